// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to send: the policy that engines have, and an engine with another one.
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>
#include "support/catch.h"

#include "rnic/engine/engine.h"

namespace diwarp::rnic {
namespace {

/// Has so many bursts to send.
struct Source final : TransmitSource {
  Served transmit(Time) override {
    if (on_transmit) on_transmit();
    if (bursts == 0) return {};
    return {.work = work, .pending = --bursts == 0 ? Pending::nothing : Pending::more};
  }
  size_t bursts = 0;
  size_t work = 1;
  std::function<void()> on_transmit;
};

/// The source that has sent least goes first; one burst a round. Its line is its own.
class LeastFirst final : public TransmitScheduler {
 public:
  void add(TransmitSource& source) override { line_.push_back(&source); }
  void remove(TransmitSource& source) override {
    std::erase(line_, &source);
    std::erase_if(sent_, [&](const auto& known) { return known.first == &source; });
  }
  bool empty() const override { return line_.empty(); }
  TransmitSource* begin_round() override {
    if (line_.empty()) return nullptr;
    TransmitSource* least = line_.front();
    for (TransmitSource* one : line_)
      if (sent(*one) < sent(*least)) least = one;
    std::erase(line_, least);
    return least;
  }
  TransmitSource* next(TransmitSource& served, size_t work) override {
    sent(served) += work;
    return nullptr;
  }

 private:
  size_t& sent(TransmitSource& source) {
    for (auto& [known, work] : sent_)
      if (known == &source) return work;
    return sent_.emplace_back(&source, 0).second;
  }

  std::vector<TransmitSource*> line_;
  std::deque<std::pair<TransmitSource*, size_t>> sent_;
};

/// An engine that is stepped by hand, and sources that note when they are served.
struct Scene {
  explicit Scene(size_t count, std::unique_ptr<TransmitScheduler> scheduler = nullptr)
      : engine({.progress = Progress::manual}, SteadyClock::instance(), counters,
               std::move(scheduler)),
        sources(count) {
    engine.exclusively([&] {
      for (size_t i = 0; i < count; ++i) {
        engine.transmits().attach(sources[i]);
        sources[i].on_transmit = [this, i] { order.push_back(i); };
      }
    });
  }
  ~Scene() {
    engine.exclusively([&] {
      for (Source& source : sources) engine.transmits().detach(source);
    });
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void activate(size_t index, size_t bursts) {
    engine.exclusively([&] {
      sources[index].bursts = bursts;
      engine.transmits().activate(sources[index]);
    });
  }
  /// The sources that are served in the next step, in order.
  std::vector<size_t> step() {
    order.clear();
    engine.poll_step();
    return order;
  }

  Counters counters;
  Engine engine;
  std::deque<Source> sources;
  std::vector<size_t> order;
};

using Order = std::vector<size_t>;

}  // namespace

TEST_CASE("round robin: each source sends one burst a round in the order in which they came") {
  Scene scene(3);
  scene.activate(2, 2);
  scene.activate(0, 1);
  scene.activate(1, 3);
  CHECK(scene.step() == Order{2, 0, 1});
  CHECK(scene.step() == Order{2, 1});
  CHECK(scene.step() == Order{1});
  CHECK(scene.step().empty());
}

TEST_CASE("round robin: a source that another one activates has its turn in the same round") {
  Scene scene(2);
  scene.sources[0].on_transmit = [&] {
    scene.order.push_back(0);
    if (scene.sources[1].bursts != 0) scene.engine.transmits().activate(scene.sources[1]);
  };
  scene.activate(0, 2);
  scene.sources[1].bursts = 1;
  CHECK(scene.step() == Order{0, 1});
  CHECK(scene.step() == Order{0});
}

TEST_CASE("round robin: a round ends though a source goes away and the others always have more") {
  Scene scene(3);
  for (size_t i = 0; i < 3; ++i) scene.activate(i, 1000);
  scene.sources[1].on_transmit = [&] {
    scene.order.push_back(1);
    if (scene.order.size() == 2)
      scene.engine.transmits().detach(scene.sources[0]);  // served, and in line again
  };
  CHECK(scene.step().size() < 10);
  CHECK(scene.step().size() == 2);
}

TEST_CASE("an engine serves its sources as the policy has it that it was given") {
  Scene scene(3, std::make_unique<LeastFirst>());
  scene.sources[0].work = 5;
  scene.sources[1].work = 2;
  for (size_t i = 0; i < 3; ++i) scene.activate(i, 100);
  Order order;
  for (int i = 0; i < 9; ++i)
    for (const size_t served : scene.step()) order.push_back(served);
  CHECK(order == Order{0, 1, 2, 2, 1, 2, 2, 1, 2});
}

TEST_CASE("a policy whose line is its own is given a source once, and stalled sources later") {
  Scene scene(2, std::make_unique<LeastFirst>());
  for (int i = 0; i < 3; ++i) scene.activate(0, 1);
  CHECK(scene.step() == Order{0});
  CHECK(scene.step().empty());
  scene.activate(1, 1);
  scene.engine.exclusively([&] {
    scene.engine.transmits().stall(scene.sources[1]);  // it stands in line
    CHECK_FALSE(scene.engine.transmits().any_stalled());
  });
  CHECK(scene.step() == Order{1});
  scene.engine.exclusively([&] { scene.engine.transmits().stall(scene.sources[1]); });
  CHECK(scene.step().empty());
  scene.engine.unstall();
  CHECK(scene.step() == Order{1});
}

}  // namespace diwarp::rnic
