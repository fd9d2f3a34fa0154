// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// How connections end, and the states of queue pairs.
namespace diwarp::contract {

namespace {

void make_ready_again(Party& party) {
  party.qp.modify(QpState::reset);
  CHECK(party.qp.state() == QpState::reset);
  party.qp.modify(QpState::init);
  CHECK(party.qp.state() == QpState::init);
}

/// The next `count` completions are flushed receives, from this wr_id on.
void check_flushed(Party& party, uint64_t count, uint64_t first = 0) {
  for (uint64_t i = 0; i < count; ++i) {
    const WorkCompletion flushed = next(party.recv_cq);
    CHECK(flushed.status == WcStatus::wr_flush_error);
    CHECK(flushed.opcode == WcOpcode::recv);
    CHECK(flushed.wr_id == first + i);
    CHECK(flushed.qp_number == party.qp.number());
  }
}

}  // namespace

TEST_CASE("disconnect lets everything out that was posted") {
  constexpr size_t kEach = 16 << 10;
  constexpr size_t kCount = 64;
  Pair pair({.memory = kCount * kEach}, {.memory = kCount * kEach});
  pair.b.post_receives(kCount, kEach);
  pair.a.fill(0, kCount * kEach, 1);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE_FALSE(pair.a.send(i * kEach, kEach, i));
  pair.a.qp.disconnect({.timeout = kPatience});
  CHECK(pair.a.qp.state() == QpState::error);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(next_good(pair.a.send_cq).wr_id == i);
  for (uint64_t i = 0; i < kCount; ++i) CHECK(next_good(pair.b.recv_cq).wr_id == i);
  CHECK(pair.b.holds(0, kCount * kEach, 1));
}

TEST_CASE("disconnect flushes the posted receives of both sides") {
  Pair pair;
  pair.a.post_receives(3, 100);
  pair.b.post_receives(5, 100);
  pair.a.qp.disconnect({.timeout = kPatience});
  check_flushed(pair.a, 3);
  check_flushed(pair.b, 5);
}

TEST_CASE("The peer of a disconnect is told by an event, and the side that asked is not") {
  Pair pair;
  EventQueue events_a(pair.device_a);
  EventQueue events_b(pair.device_b);
  pair.a.qp.disconnect({.timeout = kPatience});
  const AsyncEvent event = next_event(events_b, AsyncEventType::peer_closed);
  CHECK(event.qp_number == pair.b.qp.number());
  CHECK_FALSE(event.terminate);
  CHECK_FALSE(events_a.get_event(kMoment));
}

TEST_CASE("The side that accepted may disconnect as well") {
  Pair pair;
  EventQueue events(pair.device_a);
  pair.b.qp.disconnect({.timeout = kPatience});
  CHECK(next_event(events, AsyncEventType::peer_closed).qp_number == pair.a.qp.number());
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(pair.a.qp.state() == QpState::error);
}

TEST_CASE("Both sides may disconnect at the same time") {
  Pair pair;
  check_message(pair.a, pair.b);
  auto other =
      std::async(std::launch::async, [&] { pair.b.qp.disconnect({.timeout = kPatience}); });
  pair.a.qp.disconnect({.timeout = kPatience});
  other.get();
  CHECK(pair.a.qp.state() == QpState::error);
  CHECK(pair.b.qp.state() == QpState::error);
}

TEST_CASE("A second disconnect is no error") {
  Pair pair;
  pair.a.qp.disconnect({.timeout = kPatience});
  CHECK_FALSE(refusal([&] { pair.a.qp.disconnect(); }));
}

TEST_CASE("A queue pair without a connection has none to disconnect") {
  const Device device = open_device();
  Party party(device);
  CHECK(refusal([&] { party.qp.disconnect(); }) == Errc::invalid_state);
  CHECK(party.qp.state() == QpState::init);
}

TEST_CASE("wait_disconnected tells whether the connection ended within the timeout") {
  Pair pair;
  CHECK_FALSE(pair.a.qp.wait_disconnected(kMoment));
  auto waiting =
      std::async(std::launch::async, [&] { return pair.a.qp.wait_disconnected(kPatience); });
  pair.b.qp.modify(QpState::error);
  CHECK(waiting.get());
}

TEST_CASE("After the end of a connection a request that is posted tells when all is flushed") {
  Pair pair;
  pair.a.post_receives(5, 100);
  pair.b.qp.disconnect({.timeout = kPatience});
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK_FALSE(pair.a.send(0, 10, 9));
  CHECK_FALSE(pair.a.post_recv(5, 0, 10));
  CHECK(next(pair.a.send_cq).status == WcStatus::wr_flush_error);
  check_flushed(pair.a, 6);
}

TEST_CASE("error by hand flushes what is posted, in order, and ends the connection") {
  Pair pair;
  pair.a.post_receives(20, 100);
  pair.a.qp.modify(QpState::error);
  CHECK(pair.a.qp.state() == QpState::error);
  check_flushed(pair.a, 20);
  CHECK(pair.b.qp.wait_disconnected(kPatience));
  CHECK(pair.b.qp.state() == QpState::error);
  CHECK(pair.a.qp.query().posted_receives == 0);
}

TEST_CASE("error by hand works in every state, and twice") {
  const Device device = open_device();
  Party party(device);
  party.post_receives(2, 100);
  party.qp.modify(QpState::error);
  party.qp.modify(QpState::error);
  check_flushed(party, 2);
  party.qp.modify(QpState::reset);
  party.qp.modify(QpState::error);
  CHECK(party.qp.state() == QpState::error);
}

TEST_CASE("reset drops what is posted and reports nothing") {
  const Device device = open_device();
  Party party(device);
  party.post_receives(3, 100);
  party.qp.modify(QpState::reset);
  CHECK(party.qp.query().posted_receives == 0);
  CHECK_FALSE(party.recv_cq.wait(kMoment));
}

TEST_CASE("reset ends the connection") {
  Pair pair;
  pair.a.qp.modify(QpState::reset);
  CHECK(pair.b.qp.wait_disconnected(kPatience));
}

TEST_CASE("A queue pair that was reset connects again, many times") {
  Pair pair;
  for (uint64_t round = 0; round < 4; ++round) {
    check_message(pair.a, pair.b, round);
    check_message(pair.b, pair.a, round + 1);
    pair.a.qp.disconnect({.timeout = kPatience});
    REQUIRE(pair.b.qp.wait_disconnected(kPatience));
    make_ready_again(pair.a);
    make_ready_again(pair.b);
    join(pair.a.qp, pair.b.qp, pair.device_b);
  }
  check_message(pair.a, pair.b);
}

TEST_CASE("A queue pair connects again after a connection that failed") {
  Pair pair({}, {.access = Access::local_write});
  REQUIRE_FALSE(pair.a.write(0, 10, pair.b.remote()));
  REQUIRE(pair.a.qp.wait_disconnected(kPatience));
  REQUIRE(pair.b.qp.wait_disconnected(kPatience));
  take(pair.a.send_cq, 1);
  make_ready_again(pair.a);
  make_ready_again(pair.b);
  join(pair.a.qp, pair.b.qp, pair.device_b);
  CHECK_FALSE(pair.a.qp.query().terminate);
  check_message(pair.a, pair.b);
}

TEST_CASE("Moves that are not legal are refused with invalid_state, and change nothing") {
  const Device device = open_device();
  Party party(device);
  const auto check_refused = [&](QpState to) {
    const QpState before = party.qp.state();
    INFO(to_string(before) << " to " << to_string(to));
    CHECK(refusal([&] { party.qp.modify(to); }) == Errc::invalid_state);
    CHECK(party.qp.state() == before);
  };
  for (const QpState to : {QpState::rtr, QpState::rts, QpState::sqd, QpState::closing})
    check_refused(to);  // from init
  party.qp.modify(QpState::error);
  for (const QpState to : {QpState::init, QpState::rtr, QpState::rts, QpState::sqd})
    check_refused(to);
  party.qp.modify(QpState::reset);
  for (const QpState to : {QpState::rtr, QpState::rts, QpState::sqd, QpState::closing})
    check_refused(to);
}

TEST_CASE("In sqd posted sends wait until rts, and an event tells that the others are done") {
  if (!needs(Capability::send_queue_drain)) return;
  Pair pair;
  EventQueue events(pair.device_a);
  pair.b.post_receives(2, 100);
  REQUIRE_FALSE(pair.a.send(0, 10, 1));
  pair.a.qp.modify(QpState::sqd);
  CHECK(next_event(events, AsyncEventType::sq_drained).qp_number == pair.a.qp.number());
  CHECK(pair.a.qp.state() == QpState::sqd);
  REQUIRE_FALSE(pair.a.send(0, 10, 2));
  // The first one went out, or waits as well; the second waits in any case.
  std::optional<WorkCompletion> sent = pair.a.send_cq.wait(kMoment);
  const bool first_was_out = sent.has_value();
  if (first_was_out) {
    CHECK(sent->wr_id == 1);
    CHECK_FALSE(pair.a.send_cq.wait(kMoment));
  }
  pair.a.qp.modify(QpState::rts);
  if (!first_was_out) CHECK(next_good(pair.a.send_cq).wr_id == 1);
  CHECK(next_good(pair.a.send_cq).wr_id == 2);
  take(pair.b.recv_cq, 2);
}

TEST_CASE("In sqd the peer is still served") {
  if (!needs(Capability::send_queue_drain)) return;
  Pair pair({.access = kOpen});
  pair.a.post_receives(1, 100);
  pair.a.fill(1000, 100, 1);
  pair.a.qp.modify(QpState::sqd);
  REQUIRE_FALSE(pair.b.send(0, 10));
  REQUIRE_FALSE(pair.b.read(0, 100, pair.a.remote(1000)));
  next_good(pair.a.recv_cq);
  take(pair.b.send_cq, 2);
  CHECK(pair.b.holds(0, 100, 1));
}

TEST_CASE("A queue pair that is destroyed ends its connection") {
  const Device device = open_device();
  const Device peer = open_peer();
  Party b(peer);
  b.post_receives(2, 100);
  {
    Party a(device);
    join(a.qp, b.qp, peer);
    REQUIRE_FALSE(a.send(0, 10));
    next_good(b.recv_cq);
  }
  CHECK(b.qp.wait_disconnected(kPatience));
  check_flushed(b, 1, 1);
}

}  // namespace diwarp::contract
