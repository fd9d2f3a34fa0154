// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// Messages that find no receive.
namespace diwarp::test {

namespace {

constexpr StreamOptions kTerminate{.receive_not_ready = ReceiveNotReady::terminate};

}  // namespace

TEST_CASE("With the policy terminate a Send without a receive ends the connection") {
  Couple couple({}, {.stream = kTerminate});
  REQUIRE_FALSE(couple.a.send(0, 10));
  couple.world.settle();
  const QueuePairAttributes attributes = couple.a.qp.query();
  REQUIRE(attributes.terminate);
  CHECK(attributes.terminate->received);
  CHECK(attributes.terminate->code == TerminateCode{1, 2, 2});
  CHECK(attributes.terminate->headers.size() == 18);
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.b.qp.query().stream.receive_not_ready == ReceiveNotReady::terminate);
}

TEST_CASE("With the policy hold a Send waits, and the messages after it, too") {
  Couple couple({}, {.access = kOpen});
  couple.a.fill(pattern(100, 1));
  REQUIRE_FALSE(couple.a.send(0, 100));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 100, couple.b.remote(1000)));
  couple.world.settle();
  CHECK(couple.b.memory[1000] == std::byte{0});
  CHECK(couple.device_of_b().counter("rc_receive_not_ready") == 1);
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 100));
  couple.world.settle();
  CHECK(same(couple.b.bytes(0, 100), pattern(100, 1)));
  CHECK(same(couple.b.bytes(1000, 100), couple.b.bytes(0, 100)));
}

TEST_CASE("A hold that takes too long ends with a Terminate that names the Send") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device(), {.stream = {.receive_wait = std::chrono::seconds(5)}});
  join(a, b, llp::memory_stream_pair(1 << 20, 256));
  REQUIRE_FALSE(a.send(0, 10));
  world.settle();
  world.clock.advance(std::chrono::milliseconds(4999));
  world.settle();
  CHECK(b.qp.state() == QpState::rts);
  world.clock.advance(std::chrono::milliseconds(2));
  world.settle();
  CHECK(b.qp.state() == QpState::error);
  const QueuePairAttributes attributes = a.qp.query();
  REQUIRE(attributes.terminate);
  CHECK(attributes.terminate->code == TerminateCode{1, 2, 2});
  CHECK(attributes.terminate->headers.size() == 18);
}

TEST_CASE("A Read's response waits after a held Send") {
  Couple couple({.access = kOpen}, {.access = kOpen});
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 1));
  REQUIRE_FALSE(couple.a.send(0, 0));  // b may speak now
  couple.world.settle();
  REQUIRE_FALSE(couple.b.send(0, 10));  // finds no receive at a
  couple.world.settle();
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, couple.b.remote()));
  couple.world.settle();
  drain(couple.a.send_cq);
  CHECK(couple.a.qp.query().posted_sends == 1);
  REQUIRE_FALSE(couple.a.post_recv(0, 100, 10));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::success});
}

TEST_CASE("Immediate data that find no receive are held like a Send") {
  Couple couple;
  REQUIRE_FALSE(couple.a.qp.post_send({.opcode = WrOpcode::immediate, .immediate = 3}));
  couple.world.settle();
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 0));
  couple.world.settle();
  const auto received = drain(couple.b.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].immediate == 3);
}

TEST_CASE("Impossible policies are refused") {
  World world;
  Device& device = world.add_device();
  CHECK_THROWS_AS(RcParty(device, {.stream = {.receive_wait = Duration::zero()}}), Error);
  CHECK_THROWS_AS(RcParty(device, {.stream = {.max_fpdu = 127}}), Error);
  CHECK_THROWS_AS(RcParty(device, {.stream = {.max_fpdu = 65537}}), Error);
}

}  // namespace diwarp::test
