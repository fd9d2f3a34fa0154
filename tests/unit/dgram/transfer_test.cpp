// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "support/catch.h"
#include "unit/dgram/simulation.h"

using namespace diwarp;
using namespace diwarp::test;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

void check_exactly_once_in_order(const RdSimulation& simulation, uint64_t count) {
  std::vector<uint64_t> expected(count);
  std::iota(expected.begin(), expected.end(), uint64_t{0});
  CHECK(simulation.delivered == expected);
  CHECK_FALSE(simulation.out_of_order);
}

}  // namespace

TEST_CASE("rd: everything arrives once and in order whatever the path does") {
  for (const double loss : {0.0, 0.01, 0.05, 0.2, 0.5})
    for (const double reorder : {0.0, 0.3})
      for (const double duplicate : {0.0, 0.2}) {
        INFO("loss " << loss << " reorder " << reorder << " duplicate " << duplicate);
        RdSimulation simulation({.seed = static_cast<uint64_t>(loss * 1000 + reorder * 10) + 7,
                                 .loss = loss,
                                 .ack_loss = loss,
                                 .reorder = reorder,
                                 .duplicate = duplicate});
        REQUIRE(simulation.transfer(2000, seconds(600)));
        check_exactly_once_in_order(simulation, 2000);
      }
}

TEST_CASE("rd: sequence numbers wrap") {
  RdSimulation simulation({.seed = 3, .loss = 0.05, .ack_loss = 0.05, .reorder = 0.1}, 256,
                          (uint64_t{1} << 32) - 500);
  REQUIRE(simulation.transfer(2000, seconds(60)));
  check_exactly_once_in_order(simulation, 2000);
}

TEST_CASE("rd: nothing is sent twice where nothing is lost") {
  RdSimulation simulation({});
  REQUIRE(simulation.transfer(10000, seconds(60)));
  CHECK(simulation.transmissions == 10000);
}

TEST_CASE("rd: a little reordering is soon not taken for loss") {
  RdSimulation simulation({.seed = 5, .reorder = 0.2, .jitter = microseconds(200)});
  REQUIRE(simulation.transfer(20000, seconds(60)));
  CHECK(simulation.transmissions < 20400);
}

TEST_CASE("rd: a lost datagram costs little more than itself to send again") {
  RdSimulation simulation({.seed = 9, .loss = 0.05, .ack_loss = 0.05});
  REQUIRE(simulation.transfer(20000, seconds(120)));
  CHECK(simulation.transmissions < 22100);  // 20,000 / 0.95, and 5 percent
}

TEST_CASE("rd: throughput at 5 percent loss stays within what TCP's formula says") {
  RdSimulation simulation({.seed = 11, .loss = 0.05});
  const Time begin = simulation.now;
  REQUIRE(simulation.transfer(20000, seconds(300)));
  const double elapsed = std::chrono::duration<double>(simulation.now - begin).count();
  // Mathis et al.: 1.22 / sqrt(p) datagrams a round trip, here of 1 ms; half of it is no collapse.
  CHECK(20000 / elapsed > 0.5 * 1.22 / 0.2236 / 0.001);
}

TEST_CASE("rd: a bottleneck is kept busy and its queue not flooded for ever") {
  // 100 Mbit/s with 1,500 bytes each: 120 us; 20 ms round trip; a queue of 100.
  RdSimulation simulation({.delay = milliseconds(10), .service = microseconds(120), .queue = 100},
                          1024);
  const Time begin = simulation.now;
  REQUIRE(simulation.transfer(100000, seconds(60)));
  const double elapsed = std::chrono::duration<double>(simulation.now - begin).count();
  CHECK(100000 * 0.000120 / elapsed > 0.85);
  CHECK(simulation.wire.lost_in_queue < 100000 / 50);
}

TEST_CASE("rd: the last datagram's loss is repaired in a few round trips") {
  RdSimulation simulation({});
  REQUIRE(simulation.transfer(100, seconds(1)));
  simulation.wire.cut = true;
  const Time begin = simulation.now;
  CHECK_FALSE(simulation.transfer(1, milliseconds(1)));
  simulation.wire.cut = false;
  REQUIRE(simulation.transfer(0, seconds(1)));
  CHECK(simulation.now - begin < milliseconds(20));
  check_exactly_once_in_order(simulation, 101);
}

TEST_CASE("rd: a receiver that takes nothing stops the sender, and loses nothing") {
  RdSimulation simulation({.seed = 2, .loss = 0.02}, 64);
  simulation.blocked = true;
  CHECK_FALSE(simulation.transfer(1000, seconds(5)));
  CHECK(simulation.delivered.empty());
  CHECK(simulation.receiver.kept() == 64);
  CHECK(simulation.sender.window().next() == 65);
  const uint64_t before = simulation.transmissions;
  CHECK_FALSE(simulation.transfer(0, seconds(30)));
  CHECK(simulation.transmissions == before);  // it has all come: there is nothing to send again
  simulation.blocked = false;
  simulation.deliver_kept();
  simulation.acknowledge();
  REQUIRE(simulation.transfer(0, seconds(30)));
  check_exactly_once_in_order(simulation, 1000);
}

TEST_CASE("rd: attempts at a silent peer become rare") {
  RdSimulation simulation({});
  REQUIRE(simulation.transfer(10, seconds(1)));
  simulation.wire.cut = true;
  const uint64_t before = simulation.transmissions;
  CHECK_FALSE(simulation.transfer(100, seconds(20)));
  // Some ten doublings, then one attempt of two datagrams a second, after the first window.
  CHECK(simulation.transmissions - before < 100 + 2 * 35);
}
