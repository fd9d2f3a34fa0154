// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_queue_pair.h"
#include "stack/rc_support.h"
#include "support/own_loopback.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Sends messages of `size` bytes both ways and takes the completions; allocates nothing itself.
template <class Step>
bool exchange(RcParty& a, RcParty& b, size_t size, int messages, Step&& step) {
  std::array<WorkCompletion, 8> batch;
  const auto done = [&](CompletionQueue& cq, size_t& count) {
    const size_t got = cq.poll(batch);
    for (size_t i = 0; i < got; ++i)
      if (batch[i].status != WcStatus::success) return false;
    count += got;
    return true;
  };
  for (int i = 0; i < messages; ++i) {
    // The initiator's message comes first, and finds no receive, so that the stream is held.
    if (a.send(0, size)) return false;
    step();
    if (b.post_recv(0, 0, size) || a.post_recv(0, 0, size) || b.send(0, size)) return false;
    size_t sent = 0;
    size_t received = 0;
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (sent < 2 || received < 2) {
      step();
      if (!done(a.send_cq, sent) || !done(b.send_cq, sent)) return false;
      if (!done(a.recv_cq, received) || !done(b.recv_cq, received)) return false;
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the RC data path allocates nothing once it is warm, in memory") {
  World world;
  RcParty a(world.add_device(), {.memory = 1 << 20});
  RcParty b(world.add_device(), {.memory = 1 << 20});
  // Full before a message is out: writes stop anywhere, reads bring parts of FPDUs.
  join(a, b, llp::memory_stream_pair(10'000, 1460));
  const size_t size = GENERATE(size_t{0}, size_t{64}, size_t{1460}, size_t{400'000});
  CAPTURE(size);
  const auto step = [&] { world.settle(); };
  REQUIRE(exchange(a, b, size, 20, step));
  const size_t before = allocations();
  const bool done = exchange(a, b, size, 100, step);
  const size_t made = allocations() - before;
  REQUIRE(done);
  CHECK(made == 0);
}

TEST_CASE("the RC data path allocates nothing once it is warm, over sockets with RNIC threads") {
  const DeviceOptions device{.local = GENERATE(LocalPath::off, LocalPath::automatic)};
  Device one = Device::open(own_loopback(), device);
  Device two = Device::open(own_loopback(), device);
  RcParty a(one, {.memory = 1 << 20});
  RcParty b(two, {.memory = 1 << 20});
  connect(a, b, two);
  const size_t size = GENERATE(size_t{64}, size_t{300'000});
  CAPTURE(size);
  if (device.local != LocalPath::off)  // rings both ways are a part of the warmth
    REQUIRE(eventually([&] {
      return exchange(a, b, size, 10, [] {}) && one.counter("local_peers") != 0 &&
             two.counter("local_peers") != 0;
    }));
  REQUIRE(exchange(a, b, size, 300, [] {}));
  const size_t before = allocations();
  const auto start = std::chrono::steady_clock::now();
  const bool done = exchange(a, b, size, 200, [] {});
  const auto took = std::chrono::steady_clock::now() - start;
  const size_t made = allocations() - before;
  REQUIRE(done);
  // Memory for parts of FPDUs grows in three steps at each end, when chance has it that such parts
  // are carried, and anew where they were not for a second.
  CAPTURE(took.count(), device.local == LocalPath::off);
  CHECK(made <= 6 * (1 + static_cast<size_t>(took / rnic::kTrimAfter)));
}
