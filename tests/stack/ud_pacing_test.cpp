// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A paced sender of 1,000-byte datagrams whose link counts bytes.
struct Scene {
  explicit Scene(uint64_t rate)
      : source(world.add_device([this](World::Link link) -> World::Link {
          return std::make_unique<llp::ImpairedDatagramLink>(
              std::move(link), llp::Impairment{}, world.clock,
              [this](ConstBytes datagram, llp::Verdict) { bytes += datagram.size(); });
        }),
               {.memory = 1 << 20,
                .capacity = {.max_send_wr = 1024},
                .datagram = {.segment = 1000, .max_rate = rate}}) {}

  /// So many datagrams, in messages of ten.
  void post(size_t datagrams) {
    for (size_t i = 0; i < datagrams; i += 10)
      REQUIRE_FALSE(source.send(Address::parse("10.0.0.9:9"), 0, 9700, i, SendFlags::none));
    world.settle();
  }
  /// Bytes that leave while the time goes on in steps.
  size_t during(Duration time, Duration step) {
    const size_t before = bytes;
    for (Duration passed{0}; passed < time; passed += step) world.advance(step);
    return bytes - before;
  }

  size_t bytes = 0;
  World world;
  Party source;
};

}  // namespace

TEST_CASE(
    "a paced queue pair sends what its rate gives, to the byte, in whatever steps time goes") {
  const auto step = GENERATE(10us, 100us, 333us, 1000us);
  CAPTURE(step.count());
  constexpr uint64_t kRate = 10'000'000;  // ten datagrams a millisecond
  Scene scene(kRate);
  scene.post(5000);
  CHECK(scene.bytes == 10000);  // at once: what the rate gives in 1 ms
  size_t sent = scene.during(100ms, step);
  // A datagram may start when the last byte of tokens is there.
  CHECK(sent >= 1'000'000 - 1000);
  CHECK(sent <= 1'000'000 + 11'000);
  sent = scene.during(200ms, step);
  CHECK(sent >= 2'000'000 - 4000);  // the last step may overshoot the 200 ms
  CHECK(sent <= 2'000'000 + 4000);
}

TEST_CASE("a rate so low that it takes many milliseconds for a datagram is kept too") {
  Scene scene(10'000);  // a datagram in 100 ms
  scene.post(100);
  CHECK(scene.bytes == 1000);
  const size_t sent = scene.during(2s, 1ms);
  CHECK(sent >= 19000);
  CHECK(sent <= 21000);
}

TEST_CASE("time that passes without sends earns no more than the burst of one millisecond") {
  Scene scene(10'000'000);
  scene.world.advance(10s);
  scene.post(1000);
  CHECK(scene.bytes <= 11'000);
}

TEST_CASE("the rate can be changed while messages wait, and taken away") {
  Scene scene(10'000'000);
  scene.post(5000);
  scene.during(10ms, 100us);
  scene.source.qp.set_max_rate(1'000'000);
  CHECK(scene.source.qp.query().max_rate == 1'000'000);
  const size_t slow = scene.during(100ms, 100us);
  CHECK(slow >= 100'000 - 1000);
  CHECK(slow <= 100'000 + 3000);
  scene.source.qp.set_max_rate(100'000'000);
  const size_t fast = scene.during(10ms, 100us);
  CHECK(fast >= 1'000'000 - 10'000);
  CHECK(fast <= 1'000'000 + 110'000);
  scene.source.qp.set_max_rate(0);
  scene.world.settle();
  CHECK(scene.source.qp.query().posted_sends == 0);
  CHECK(scene.source.qp.query().max_rate == 0);
}

TEST_CASE("a queue pair without a limit sends at once") {
  Scene scene(0);
  scene.post(5000);
  CHECK(scene.bytes == 5'000'000);
}

TEST_CASE("a paced queue pair that waits costs no steps") {
  Scene scene(10'000);
  scene.post(100);
  scene.world.advance(1ms);
  CHECK(scene.world.devices[0].progress() == 0);
}
