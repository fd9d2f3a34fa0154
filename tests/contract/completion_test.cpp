// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
#include <thread>

#include "contract/pair.h"

/// Completion queues.
namespace diwarp::contract {

TEST_CASE("Polling an empty completion queue takes nothing, with a timeout or without") {
  const Device device = open_device();
  Party party(device);
  std::array<WorkCompletion, 4> batch;
  CHECK(party.recv_cq.poll(batch) == 0);
  CHECK(party.recv_cq.poll(batch, Duration::zero()) == 0);
  CHECK(party.recv_cq.poll(batch, kMoment) == 0);
  CHECK_FALSE(party.recv_cq.wait(kMoment));
}

TEST_CASE("Polling takes no more completions than asked for, the oldest first") {
  Pair pair;
  pair.b.post_receives(10, 100);
  for (uint64_t i = 0; i < 10; ++i) REQUIRE_FALSE(pair.a.send(0, 100, i));
  uint64_t received = 0;
  for (const size_t wanted : {size_t{1}, size_t{4}, size_t{5}}) {
    std::array<WorkCompletion, 10> batch;
    size_t got = 0;
    while (got < wanted) {
      const size_t more =
          pair.b.recv_cq.poll(std::span(batch).subspan(got, wanted - got), kPatience);
      REQUIRE(more > 0);
      REQUIRE(more <= wanted - got);
      got += more;
    }
    for (size_t i = 0; i < wanted; ++i) CHECK(batch[i].wr_id == received++);
  }
  std::array<WorkCompletion, 1> one;
  CHECK(pair.b.recv_cq.poll(one) == 0);
  CHECK(pair.b.recv_cq.poll(std::span(one).first(0)) == 0);
}

TEST_CASE("A wait for a completion ends when one comes from the peer") {
  Pair pair;
  pair.b.post_receives(1, 100);
  auto sending = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(kMoment);
    return pair.a.send(0, 100);
  });
  const std::optional<WorkCompletion> received = pair.b.recv_cq.wait(kPatience);
  CHECK_FALSE(sending.get());
  REQUIRE(received);
  CHECK(received->byte_count == 100);
}

TEST_CASE("A wait without a timeout returns what comes") {
  Pair pair;
  pair.b.post_receives(1, 100);
  REQUIRE_FALSE(pair.a.send(0, 10));
  CHECK(pair.b.recv_cq.wait().byte_count == 10);
  CHECK(pair.b.recv_cq.poll({}) == 0);
}

TEST_CASE("One completion queue may serve sends and receives of several queue pairs") {
  const Device device = open_device();
  const Device peer = open_peer();
  const ProtectionDomain pd(device);
  CompletionQueue cq(device, 64);
  QueuePair one(pd, {.send_cq = cq, .recv_cq = cq});
  QueuePair other(pd, {.send_cq = cq, .recv_cq = cq});
  Party of_one(peer);
  Party of_other(peer);
  join(one, of_one.qp, peer);
  join(other, of_other.qp, peer);
  REQUIRE_FALSE(one.post_recv({.wr_id = 1}));
  REQUIRE_FALSE(other.post_recv({.wr_id = 2}));
  REQUIRE_FALSE(of_one.post_recv(0, 0, 10));
  REQUIRE_FALSE(of_one.send(0, 0));
  CHECK(next_good(cq).qp_number == one.number());
  REQUIRE_FALSE(of_other.send(0, 0));
  CHECK(next_good(cq).qp_number == other.number());
  REQUIRE_FALSE(one.post_send({.wr_id = 3}));
  const WorkCompletion sent = next_good(cq);
  CHECK(sent.opcode == WcOpcode::send);
  CHECK(sent.wr_id == 3);
  CHECK(sent.qp_number == one.number());
}

TEST_CASE("A completion queue smaller than what completes loses no receive, in order") {
  Pair pair({}, {.entries = 2});
  pair.b.post_receives(60, 100);
  for (uint64_t i = 0; i < 60; ++i) REQUIRE_FALSE(pair.a.send(0, 10, i));
  for (const WorkCompletion& sent : take(pair.a.send_cq, 60))
    CHECK(sent.status == WcStatus::success);
  for (uint64_t i = 0; i < 60; ++i) CHECK(next_good(pair.b.recv_cq).wr_id == i);
}

TEST_CASE("A completion queue smaller than what completes loses no send, in order") {
  Pair pair({.entries = 1, .capacity = {.max_send_wr = 64}});
  pair.b.post_receives(60, 100);
  for (uint64_t i = 0; i < 60; ++i) REQUIRE_FALSE(pair.a.send(0, 10, i));
  take(pair.b.recv_cq, 60);
  for (uint64_t i = 0; i < 60; ++i) CHECK(next_good(pair.a.send_cq).wr_id == i);
}

TEST_CASE("A completion queue smaller than what is flushed loses nothing, in order") {
  Pair pair({.entries = 2});
  pair.a.post_receives(40, 100);
  pair.a.qp.modify(QpState::error);
  for (uint64_t i = 0; i < 40; ++i) {
    const WorkCompletion flushed = next(pair.a.recv_cq);
    CHECK(flushed.status == WcStatus::wr_flush_error);
    CHECK(flushed.wr_id == i);
  }
}

TEST_CASE("A full completion queue is told by an event") {
  if (!needs(Capability::overflow_events)) return;
  Pair pair({.entries = 1});
  EventQueue events(pair.device_a);
  pair.a.post_receives(10, 100);
  pair.a.qp.modify(QpState::error);
  next_event(events, AsyncEventType::cq_overflow);
  CHECK(take(pair.a.recv_cq, 10).size() == 10);
}

TEST_CASE("A queue pair that was destroyed leaves its completions in the queue") {
  const Device device = open_device();
  const Device peer = open_peer();
  const ProtectionDomain pd(device);
  CompletionChannel channel(device);
  CompletionQueue cq(device, 16, channel);
  Party other(peer);
  other.post_receives(1, 10);
  uint32_t number = 0;
  {
    QueuePair qp(pd, {.send_cq = cq, .recv_cq = cq});
    join(qp, other.qp, peer);
    number = qp.number();
    cq.arm();
    REQUIRE_FALSE(qp.post_send({.wr_id = 5}));
    REQUIRE(channel.get_event(kPatience));
  }
  const WorkCompletion left = next_good(cq);
  CHECK(left.wr_id == 5);
  CHECK(left.qp_number == number);
}

TEST_CASE("Two threads that poll one completion queue get each completion once") {
  constexpr uint64_t kMessages = 2000;
  Pair pair({}, {.capacity = {.max_recv_wr = kMessages}});
  for (uint64_t i = 0; i < kMessages; ++i) REQUIRE_FALSE(pair.b.post_recv(i, 0, 100));
  std::vector<std::atomic<int>> seen(kMessages);
  std::atomic<uint64_t> total{0};
  const auto poll = [&] {
    std::array<WorkCompletion, 3> batch;
    while (total.load() < kMessages) {
      const size_t got = pair.b.recv_cq.poll(batch, kMoment);
      for (size_t i = 0; i < got; ++i) {
        if (batch[i].wr_id < kMessages) ++seen[batch[i].wr_id];
        ++total;
      }
      if (pair.b.qp.state() != QpState::rts) return;
    }
  };
  auto one = std::async(std::launch::async, poll);
  auto other = std::async(std::launch::async, poll);
  uint64_t sent = 0;
  for (; sent < kMessages; ++sent) {
    std::error_code error;
    while ((error = pair.a.send(0, 10, sent)) == Errc::queue_full)
      if (!pair.a.send_cq.wait(kPatience)) break;
    if (error) break;
  }
  if (sent != kMessages) pair.b.qp.modify(QpState::error);  // lets both threads go
  one.get();
  other.get();
  REQUIRE(sent == kMessages);
  CHECK(total == kMessages);
  for (const std::atomic<int>& count : seen) REQUIRE(count == 1);
}

}  // namespace diwarp::contract
