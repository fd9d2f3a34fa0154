// SPDX-License-Identifier: Apache-2.0
// An engine whose input somebody else gathers: input that is announced while it sleeps wakes it.
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/unique_fd.h"
#include "counting_endpoint.h"
#include "rnic/engine/attach.h"
#include "rnic/engine/engine.h"
#include "support/catch.h"

namespace diwarp::rnic {
namespace {

using namespace std::chrono_literals;

/// Announces one endpoint when it is told to; its descriptor stays silent.
class QuietQueue final : public llp::InputQueue {
 public:
  int descriptor() const override { return fd_.get(); }
  void gather(bool) override {
    ++gathered;
    if (due_at_gather.exchange(false)) ready_ = true;
  }
  void* next_ready() override { return ready_.exchange(false) ? key : nullptr; }
  Duration silence() override {
    if (ready_) return Duration::zero();
    return due_at_gather ? until_gather : Duration::max();
  }
  void announce() { ready_ = true; }

  void* key = nullptr;                     // of the endpoint; set before it is attached
  std::atomic<bool> due_at_gather{false};  // something that the next gather() announces
  Duration until_gather = 1ms;             // and how long that may wait
  std::atomic<uint64_t> gathered{0};

 private:
  UniqueFd fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> ready_{false};
};

/// An engine with its thread, asleep.
struct Scene {
  Scene() : engine({.spin = Duration::zero()}, SteadyClock::instance(), counters) {
    queue.key = static_cast<InputSource*>(&endpoint);
    engine.exclusively([this] { attach_endpoint(engine, endpoint, fd.get(), &queue); });
    settle();
  }
  ~Scene() {
    engine.exclusively([this] { detach_endpoint(engine, endpoint); });
  }
  /// Until the engine has looked at its queue no more for a while.
  void settle() const {
    for (uint64_t before = ~uint64_t{0}; before != queue.gathered;) {
      before = queue.gathered;
      std::this_thread::sleep_for(20ms);
    }
  }
  bool received_since(uint64_t before) const {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (endpoint.received == before && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(1ms);
    return endpoint.received != before;
  }

  UniqueFd fd{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Counters counters;
  QuietQueue queue;
  CountingEndpoint endpoint;
  Engine engine;
};

TEST_CASE("input that a sender's step announces is received though the RNIC thread sleeps") {
  Scene scene;
  const uint64_t before = scene.endpoint.received;
  scene.endpoint.on_transmit = [&] { scene.queue.announce(); };
  scene.engine.notify(scene.endpoint);
  CHECK(scene.received_since(before));
}

TEST_CASE("a sleeping engine looks again when its queue says after how long") {
  Scene scene;
  const uint64_t before = scene.endpoint.received;
  scene.endpoint.on_transmit = [&] { scene.queue.due_at_gather = true; };
  scene.engine.notify(scene.endpoint);
  CHECK(scene.received_since(before));
}

TEST_CASE("an engine takes the input that several queues gather") {
  Counters counters;
  QuietQueue queues[2];
  CountingEndpoint endpoints[2];
  const UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Engine engine({.progress = Progress::manual}, SteadyClock::instance(), counters);
  for (int i = 0; i < 2; ++i) {
    queues[i].key = static_cast<InputSource*>(&endpoints[i]);
    engine.exclusively([&] { attach_endpoint(engine, endpoints[i], fd.get(), &queues[i]); });
  }
  engine.poll_step();
  for (int i = 0; i < 2; ++i) {
    const uint64_t before[] = {endpoints[0].received, endpoints[1].received};
    queues[i].announce();
    engine.wait_for_work(Duration::zero());
    engine.poll_step();
    CHECK(endpoints[i].received == before[i] + 1);
    CHECK(endpoints[1 - i].received == before[1 - i]);
  }
  for (CountingEndpoint& endpoint : endpoints)
    engine.exclusively([&] { detach_endpoint(engine, endpoint); });
}

TEST_CASE("a thread that sleeps by hand is not kept from input that was announced") {
  Counters counters;
  QuietQueue queue;
  CountingEndpoint endpoint;
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Engine engine({.progress = Progress::manual}, SteadyClock::instance(), counters);
  queue.key = static_cast<InputSource*>(&endpoint);
  engine.exclusively([&] { attach_endpoint(engine, endpoint, fd.get(), &queue); });
  engine.poll_step();
  engine.wait_for_work(Duration::zero());  // takes the wake that came with attach()
  queue.announce();
  engine.wait_for_work(Duration(1h));
  const uint64_t before = endpoint.received;
  engine.poll_step();
  CHECK(endpoint.received == before + 1);
  engine.exclusively([&] { detach_endpoint(engine, endpoint); });
}

TEST_CASE("a thread that sleeps by hand sleeps on while its queue has something to do later") {
  Counters counters;
  QuietQueue queue;
  CountingEndpoint endpoint;
  UniqueFd fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Engine engine({.progress = Progress::manual}, SteadyClock::instance(), counters);
  queue.key = static_cast<InputSource*>(&endpoint);
  queue.until_gather = 1h;
  engine.exclusively([&] { attach_endpoint(engine, endpoint, fd.get(), &queue); });
  engine.poll_step();
  engine.wait_for_work(Duration::zero());  // takes the wake that came with attach()
  queue.due_at_gather = true;
  std::atomic<bool> told{false};
  std::thread waker([&] {
    std::this_thread::sleep_for(20ms);
    told = true;
    engine.wake();
  });
  engine.wait_for_work(Duration(1h));
  CHECK(told);
  waker.join();
  engine.exclusively([&] { detach_endpoint(engine, endpoint); });
}

}  // namespace
}  // namespace diwarp::rnic
