// SPDX-License-Identifier: Apache-2.0
// DeviceOptions::spin, takeover, yield_after and cpu: whatever they are, everything arrives.
#include "stack/support.h"
#include "support/captured_stderr.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Ten messages there and back between devices with these options, sleeping in each wait.
void check_ping_pong(const DeviceOptions& options) {
  Device one = Device::open("127.0.0.1", options);
  Device two = Device::open("127.0.0.1", options);
  Party a(one);
  Party b(two);
  a.post_receives(10, 64);
  b.post_receives(10, 64);
  for (uint64_t i = 0; i < 10; ++i) {
    REQUIRE_FALSE(a.send(b.address(), 0, 64, i));
    REQUIRE(b.recv_cq.wait(kPatience));
    REQUIRE_FALSE(b.send(a.address(), 0, 64, i));
    REQUIRE(a.recv_cq.wait(kPatience));
  }
}

}  // namespace

TEST_CASE("an RNIC thread that never spins, and one that spins for long, bring everything") {
  check_ping_pong({.spin = GENERATE(0us, 1us, 20000us)});
}

TEST_CASE("a thread that waits is woken however late the RNIC thread takes over from pollers") {
  check_ping_pong({.takeover = GENERATE(Duration(0us), Duration(1us), Duration(24h)),
                   .takeover_limit = GENERATE(Duration(0us), Duration(1us), Duration::max())});
}

TEST_CASE("whenever threads that poll in vain yield, everything arrives") {
  const Duration after = GENERATE(Duration(0us), Duration(50us), Duration::max());
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  Device device = Device::open("127.0.0.1", {.progress = progress, .yield_after = after});
  Party party(device);
  party.post_receives(10, 64);
  for (uint64_t i = 0; i < 10; ++i) {
    REQUIRE_FALSE(party.send(party.address(), 0, 64, i));
    std::array<WorkCompletion, 1> one;
    CHECK(eventually([&] { return party.recv_cq.poll(one) == 1; }));
  }
}

TEST_CASE("manual devices wait and are woken with any spin") {
  const Duration spin = GENERATE(Duration(0us), Duration(200us), Duration::max());
  const DeviceOptions options{.progress = Progress::manual, .spin = spin};
  Device device = Device::open("127.0.0.1", options);
  Party party(device);
  party.post_receives(1, 64);
  REQUIRE_FALSE(party.send(party.address(), 0, 64));
  CHECK(party.recv_cq.wait(kPatience));
  std::array<WorkCompletion, 4> batch;
  static_cast<void>(party.recv_cq.poll(batch));
  CHECK(party.recv_cq.poll(batch, 1ms) == 0);  // no longer than that
}

TEST_CASE("a processor that does not exist is warned of, and the RNIC thread runs elsewhere") {
  const CapturedStderr errors;
  const DeviceOptions options{.cpu = GENERATE(1023, 1'000'000)};
  Device device = Device::open("127.0.0.1", options);
  CHECK(eventually([&] { return errors.text().find("processor") != std::string::npos; }));
  Party party(device);
  party.post_receives(1, 64);
  REQUIRE_FALSE(party.send(party.address(), 0, 64));
  CHECK(party.recv_cq.wait(kPatience));
}
