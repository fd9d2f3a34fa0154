// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// How connections end: in order, and by hand.
namespace diwarp::test {

// --- The orderly end.

TEST_CASE("RC disconnect lets everything out that was posted") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one, {.memory = 4 << 20});
  RcParty b(other, {.memory = 4 << 20});
  connect(a, b, other);
  a.fill(pattern(4 << 20, 1));
  a.post_receives(3, 100);
  b.post_receives(65, 64 << 10);
  for (uint64_t i = 0; i < 64; ++i) REQUIRE_FALSE(a.send(i << 16, 1 << 16, i));
  a.qp.disconnect();
  CHECK(a.qp.state() == QpState::error);
  const auto sent = await(a.send_cq, 64);
  REQUIRE(sent.size() == 64);
  for (const WorkCompletion& completion : sent) CHECK(completion.status == WcStatus::success);
  for (int i = 0; i < 3; ++i) CHECK(next(a.recv_cq).status == WcStatus::wr_flush_error);
  for (uint64_t i = 0; i < 64; ++i) REQUIRE(next(b.recv_cq).status == WcStatus::success);
  CHECK(next(b.recv_cq).status == WcStatus::wr_flush_error);
  CHECK(b.qp.wait_disconnected(kPatience));
  CHECK(same(a.memory, b.memory));
  CHECK(one.counter("rc_disconnects") == 1);
  CHECK(other.counter("rc_disconnects") == 1);
  a.qp.disconnect();  // once more is no error
}

TEST_CASE("RC peers may disconnect at the same time with sends on both sides") {
  const Device device = Device::open("127.0.0.1");
  RcParty a(device);
  RcParty b(device);
  connect(a, b, device);
  a.post_receives(2, 100);
  b.post_receives(1, 100);
  REQUIRE_FALSE(a.send(0, 100));
  CHECK(next(b.recv_cq).status == WcStatus::success);
  // The next Send of b goes out as it is posted, before the end that a sends.
  REQUIRE_FALSE(b.send(0, 100));
  CHECK(next(b.send_cq).status == WcStatus::success);
  CHECK(next(a.recv_cq).status == WcStatus::success);
  REQUIRE_FALSE(b.send(0, 100));
  auto other = std::async(std::launch::async, [&] { b.qp.disconnect({.timeout = kPatience}); });
  a.qp.disconnect({.timeout = kPatience});
  other.get();
  CHECK(next(a.recv_cq).status == WcStatus::success);
  CHECK(next(b.send_cq).status == WcStatus::success);
  CHECK(device.counter("rc_resets") == 0);
  CHECK(device.counter("rc_disconnects") == 2);
}

TEST_CASE("RC messages that arrive while disconnecting are delivered to posted receives") {
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair();
  party.impl().start(negotiated(std::move(ends.second), true));
  party.post_receives(1, 100);
  auto leaving =
      std::async(std::launch::async, [&] { party.qp.disconnect({.timeout = kPatience}); });
  REQUIRE(eventually([&] { return party.qp.state() == QpState::closing; }));
  write(*ends.first, fpdu_bytes(Fpdu{.payload = text("taken")}));
  write(*ends.first, fpdu_bytes(Fpdu{.msn = 2, .last = false, .payload = text("nobody")}));
  write(*ends.first, fpdu_bytes(Fpdu{.msn = 2, .offset = 6, .payload = text("wants this")}));
  ends.first->shutdown_send();
  leaving.get();
  CHECK(statuses(party.recv_cq) == Statuses{WcStatus::success});
  CHECK(same(party.bytes(0, 5), text("taken")));
  CHECK(world.devices[0].counter("rc_disconnects") == 1);
}

TEST_CASE("RC disconnect of a queue pair that holds its stream does not wait for receives") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one);
  RcParty b(other);
  connect(a, b, other);
  REQUIRE_FALSE(a.send(0, 100));
  REQUIRE(eventually([&] { return other.counter("rc_rx_bytes") != 0; }));
  b.qp.disconnect({.timeout = kPatience});
  CHECK(a.qp.wait_disconnected(kPatience));
  CHECK(other.counter("rc_disconnects") == 1);
}

TEST_CASE("RC disconnect from a peer that never closes ends after its timeout") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  auto [peer, mine] = raw_pair();
  party.impl().start(negotiated(stream_of(std::move(mine)), true));
  party.post_receives(1, 100);
  party.qp.disconnect({.timeout = 50ms});
  CHECK(party.qp.state() == QpState::error);
  CHECK(next(party.recv_cq).status == WcStatus::wr_flush_error);
  CHECK(device.counter("rc_resets") == 1);
}

TEST_CASE("RC disconnect of a responder that was never spoken to ends when its peer closes") {
  Couple couple;
  REQUIRE_FALSE(couple.b.send(0, 100));
  auto leaving =
      std::async(std::launch::async, [&] { couple.b.qp.disconnect({.timeout = kPatience}); });
  REQUIRE(eventually([&] { return couple.b.qp.state() == QpState::closing; }));
  couple.a.qp.modify(QpState::error);
  leaving.get();
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::wr_flush_error});
}

TEST_CASE("RC disconnect is for connected queue pairs, waiting for the end is for all") {
  World world;
  RcParty party(world.add_device());
  CHECK(refusal([&] { party.qp.disconnect(); }) == Errc::invalid_state);
  CHECK(party.qp.wait_disconnected(0s));
  auto ends = llp::memory_stream_pair();
  party.impl().start(negotiated(std::move(ends.second), true));
  party.qp.modify(QpState::error);
  CHECK(party.qp.wait_disconnected(kPatience));
  party.qp.disconnect();
}

TEST_CASE("RC wait_disconnected gives up after its timeout") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  auto ends = socket_streams();
  party.impl().start(negotiated(std::move(ends.first), true));
  CHECK_FALSE(party.qp.wait_disconnected(10ms));
  auto waiting = std::async(std::launch::async, [&] { return party.qp.wait_disconnected(-1s); });
  ends.second.reset();
  CHECK(waiting.get());
}

// --- By hand.

TEST_CASE("RC moved to error by hand flushes everything, in order, and ends the connection") {
  Couple couple(50);
  couple.b.post_receives(2, 2000);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(couple.a.send(0, 1000, i));
  couple.a.post_receives(2, 10);
  couple.world.devices[0].progress();
  couple.a.qp.modify(QpState::error);
  CHECK(statuses(couple.a.send_cq) == Statuses(3, WcStatus::wr_flush_error));
  CHECK(statuses(couple.a.recv_cq) == Statuses(2, WcStatus::wr_flush_error));
  couple.world.settle();
  // The message was half there.
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.device_of_b().counter("rc_resets") == 1);
  couple.a.qp.modify(QpState::error);
}

TEST_CASE("RC reset drops what is posted and keeps what is complete") {
  Couple couple;
  couple.b.post_receives(2, 100);
  REQUIRE_FALSE(couple.a.send(0, 10, 1));
  couple.world.settle();
  couple.b.qp.modify(QpState::reset);
  CHECK(statuses(couple.b.recv_cq) == Statuses{WcStatus::success});
  CHECK(couple.b.qp.query().posted_receives == 0);
  CHECK(couple.b.post_recv(1, 0, 1) == Errc::invalid_state);
}

TEST_CASE("RC can be reset and connected again, many times, even inside a message") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device(), {.capacity = {.max_recv_wr = 4}});
  for (int round = 0; round < 20; ++round) {
    join(a, b, llp::memory_stream_pair(100, 256));
    b.post_receives(4, 1000);
    REQUIRE_FALSE(a.send(0, 10, 1));
    REQUIRE_FALSE(a.send(0, 1000, 2));
    world.devices[0].progress();
    world.devices[1].progress();
    REQUIRE(drain(b.recv_cq).size() == 1);
    for (RcParty* party : {&a, &b}) {
      party->qp.modify(QpState::reset);
      party->qp.modify(QpState::init);
    }
    drain(a.send_cq);
    CHECK(drain(b.recv_cq).empty());
  }
}

TEST_CASE("RC completions of a flush that find the queue full come later") {
  World world;
  RcParty party(world.add_device(), {.entries = 2});
  party.post_receives(20, 10);
  party.qp.modify(QpState::error);
  uint64_t flushed = 0;
  for (int round = 0; round < 100; ++round) {
    world.settle();
    for (const WorkCompletion& completion : drain(party.recv_cq)) {
      CHECK(completion.status == WcStatus::wr_flush_error);
      CHECK(completion.wr_id == flushed++);
    }
  }
  CHECK(flushed == 20);
}

TEST_CASE("An RC queue pair that is destroyed ends its connection") {
  World world;
  RcParty b(world.add_device());
  std::optional<RcParty> a(std::in_place, world.add_device());
  join(*a, b, llp::memory_stream_pair());
  b.post_receives(1, 100);
  REQUIRE_FALSE(a->send(0, 100));
  world.settle();
  a.reset();
  world.settle();
  CHECK(statuses(b.recv_cq) == Statuses{WcStatus::success});
  CHECK(b.qp.state() == QpState::error);
  CHECK(world.devices[0].counter("rc_disconnects") == 1);
}

}  // namespace diwarp::test
