// SPDX-License-Identifier: Apache-2.0
// Whether an endpoint has the engine to itself, so that a long burst of it keeps nobody waiting:
// asked of endpoints that the poller watches and of those whose input a queue gathers.
#include <sys/eventfd.h>
#include <unistd.h>

#include <deque>

#include "base/unique_fd.h"
#include "rnic/engine/attach.h"
#include "rnic/engine/engine.h"
#include "support/catch.h"

namespace diwarp::rnic {
namespace {

UniqueFd event() { return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

/// Tells of its input once in each step, by its descriptor.
struct Talker : Endpoint {
  explicit Talker(Engine& owner) : engine(owner) {}
  size_t receive(Time) override { return talks ? 1 : 0; }
  Served transmit(Time) override {
    was_alone = engine.transmits().is_alone(*this);
    return {};
  }
  void talk(bool on) {
    uint64_t count = 1;
    if (on && !talks) REQUIRE(::write(fd.get(), &count, sizeof count) == sizeof count);
    if (!on && talks) REQUIRE(::read(fd.get(), &count, sizeof count) == sizeof count);
    talks = on;
  }

  Engine& engine;
  UniqueFd fd = event();
  bool talks = false;
  bool was_alone = false;
};

/// Tells of the same instead.
class Announcer final : public llp::InputQueue {
 public:
  explicit Announcer(std::deque<Talker>& talkers) : talkers_(talkers) {}
  int descriptor() const override { return fd_.get(); }
  void gather(bool) override { next_ = 0; }
  void* next_ready() override {
    while (next_ < talkers_.size() && !talkers_[next_].talks) ++next_;
    return next_ < talkers_.size() ? static_cast<InputSource*>(&talkers_[next_++]) : nullptr;
  }
  Duration silence() override { return Duration::max(); }

 private:
  std::deque<Talker>& talkers_;
  size_t next_ = 0;
  UniqueFd fd_ = event();
};

/// An engine, stepped by hand, and so many endpoints whose input the poller or a queue tells of.
struct Scene {
  Scene(size_t count, bool gathered) {
    for (size_t i = 0; i < count; ++i) talkers.emplace_back(engine);
    for (Talker& talker : talkers) attach(talker, gathered ? &queue : nullptr);
    steps(1);
  }
  ~Scene() {
    for (Talker& talker : talkers) engine.exclusively([&] { detach_endpoint(engine, talker); });
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void attach(Talker& talker, llp::InputQueue* by) {
    engine.exclusively([&] { attach_endpoint(engine, talker, talker.fd.get(), by); });
  }
  void steps(size_t count) {
    while (count-- > 0) engine.poll_step();
  }
  /// Takes a step in which nobody but this one sends.
  bool is_alone(size_t index) {
    engine.exclusively([&] { engine.transmits().activate(talkers[index]); });
    steps(1);
    return talkers[index].was_alone;
  }

  Counters counters;
  Engine engine{{.progress = Progress::manual}, SteadyClock::instance(), counters};
  std::deque<Talker> talkers;
  Announcer queue{talkers};
};

TEST_CASE("an endpoint is alone until another has input and again when that was long ago") {
  const bool gathered = GENERATE(false, true);
  CAPTURE(gathered);
  Scene scene(2, gathered);
  CHECK(scene.is_alone(0));
  scene.talkers[0].talk(true);
  CHECK(scene.is_alone(0));
  CHECK_FALSE(scene.is_alone(1));
  scene.talkers[1].talk(true);
  scene.steps(kStepsPerLook);
  CHECK_FALSE(scene.is_alone(0));
  scene.talkers[1].talk(false);
  CHECK_FALSE(scene.is_alone(0));
  scene.steps(kEmptyPollsUntilPoller + 1);
  CHECK(scene.is_alone(0));
  CHECK_FALSE(scene.is_alone(1));
}

TEST_CASE("an endpoint is not alone while another has something to send") {
  const bool gathered = GENERATE(false, true);
  Scene scene(2, gathered);
  scene.engine.exclusively([&] {
    for (Talker& talker : scene.talkers) scene.engine.transmits().activate(talker);
  });
  scene.steps(1);
  CHECK_FALSE(scene.talkers[0].was_alone);
}

TEST_CASE("of an overload of sources with input none is alone until all but one are silent") {
  const bool gathered = GENERATE(false, true);
  CAPTURE(gathered);
  const size_t sources = kBusyPolledSources + 1;
  Scene scene(sources, gathered);
  for (Talker& talker : scene.talkers) talker.talk(true);
  size_t alone = 0;
  for (size_t step = 0; step < 3 * kLooksPerEpoch; ++step)
    alone += scene.is_alone(step % sources) ? 1 : 0;
  CHECK(alone == 0);
  for (size_t i = 1; i < sources; ++i) scene.talkers[i].talk(false);
  scene.steps(2 * kLooksPerEpoch + kEmptyPollsUntilPoller);
  CHECK(scene.is_alone(0));
  CHECK_FALSE(scene.is_alone(1));
}

TEST_CASE("of the sources that are left after an overload none is alone when its epoch is over") {
  const bool gathered = GENERATE(false, true);
  CAPTURE(gathered);
  const size_t sources = kBusyPolledSources + 1;
  Scene scene(sources, gathered);
  for (Talker& talker : scene.talkers) talker.talk(true);
  scene.steps(2);
  for (size_t i = 2; i < sources; ++i) scene.talkers[i].talk(false);
  size_t alone = 0;
  for (size_t step = 0; step < 3 * kLooksPerEpoch; ++step) alone += scene.is_alone(0) ? 1 : 0;
  CHECK(alone == 0);
}

TEST_CASE("an endpoint that goes away leaves the other alone") {
  const bool gathered = GENERATE(false, true);
  Scene scene(2, gathered);
  scene.talkers[1].talk(true);
  CHECK_FALSE(scene.is_alone(0));
  scene.engine.exclusively([&] { detach_endpoint(scene.engine, scene.talkers[1]); });
  scene.talkers[1].talk(false);
  CHECK(scene.is_alone(0));
}

}  // namespace
}  // namespace diwarp::rnic
