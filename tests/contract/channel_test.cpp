// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <thread>

#include "contract/pair.h"

/// Completion channels, and event queues as something to sleep on.
namespace diwarp::contract {

namespace {

constexpr uint64_t kContext = 77;

bool readable(int descriptor, Duration timeout) {
  pollfd watched{descriptor, POLLIN, 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  return ::poll(&watched, 1, static_cast<int>(milliseconds.count())) == 1;
}

/// A queue pair whose receives are told by a channel, and its peer.
struct Told {
  Told() {
    join(source.qp, qp, device);
    for (uint64_t i = 0; i < 16; ++i) REQUIRE_FALSE(qp.post_recv({.wr_id = i}));
  }
  /// A message of no length is sent to the queue pair.
  void message(SendFlags flags = SendFlags::none) { REQUIRE_FALSE(source.send(0, 0, 0, flags)); }

  Device device = open_device();
  Device peer = open_peer();
  CompletionChannel channel{device};
  CompletionQueue send_cq{device, 16};
  CompletionQueue recv_cq{device, 16, channel, kContext};
  ProtectionDomain pd{device};
  QueuePair qp{pd, {.send_cq = send_cq, .recv_cq = recv_cq}};
  Party source{peer};
};

}  // namespace

TEST_CASE("An armed completion queue gives one event, with its context") {
  Told told;
  told.recv_cq.arm();
  told.message();
  const std::optional<CompletionEvent> event = told.channel.get_event(kPatience);
  REQUIRE(event);
  CHECK(event->context == kContext);
  next_good(told.recv_cq);
  told.message();
  next_good(told.recv_cq);
  CHECK_FALSE(told.channel.get_event(kMoment));
}

TEST_CASE("A completion queue that is not armed gives no event") {
  Told told;
  told.message();
  next_good(told.recv_cq);
  CHECK_FALSE(told.channel.get_event(kMoment));
}

TEST_CASE("A channel gives nothing after its timeout") {
  Told told;
  CHECK_FALSE(told.channel.get_event(Duration::zero()));
  told.recv_cq.arm();
  CHECK_FALSE(told.channel.get_event(kMoment));
}

TEST_CASE("After each arming there is one event more") {
  Told told;
  for (int round = 0; round < 5; ++round) {
    told.recv_cq.arm();
    told.message();
    REQUIRE(told.channel.get_event(kPatience));
    next_good(told.recv_cq);
  }
  CHECK_FALSE(told.channel.get_event(kMoment));
}

TEST_CASE("Armed for solicited ones only, a plain Send gives no event, and a solicited one does") {
  if (!needs(Capability::solicited_events)) return;
  Told told;
  told.recv_cq.arm(true);
  told.message();
  CHECK_FALSE(next_good(told.recv_cq).solicited);
  CHECK_FALSE(told.channel.get_event(kMoment));
  told.message(SendFlags::solicited);
  CHECK(told.channel.get_event(kPatience));
  CHECK(next_good(told.recv_cq).solicited);
}

TEST_CASE("Armed for solicited ones only, a failed completion gives an event") {
  Told told;
  told.recv_cq.arm(true);
  told.qp.modify(QpState::error);
  CHECK(told.channel.get_event(kPatience));
  CHECK(next(told.recv_cq).status == WcStatus::wr_flush_error);
}

TEST_CASE("Armed for any completion, a solicited one gives an event, too") {
  Told told;
  told.recv_cq.arm();
  told.message(SendFlags::solicited);
  CHECK(told.channel.get_event(kPatience));
}

TEST_CASE("A channel tells which of several completion queues has something") {
  const Device device = open_device();
  CompletionChannel channel(device);
  const ProtectionDomain pd(device);
  CompletionQueue first(device, 4, channel, 1);
  CompletionQueue second(device, 4, channel, 2);
  QueuePair one(pd, {.send_cq = first, .recv_cq = first});
  QueuePair other(pd, {.send_cq = second, .recv_cq = second});
  for (QueuePair* qp : {&one, &other}) REQUIRE_FALSE(qp->post_recv({}));
  first.arm();
  second.arm();
  for (auto [qp, context] : {std::pair(&other, 2U), std::pair(&one, 1U)}) {
    qp->modify(QpState::error);
    const std::optional<CompletionEvent> event = channel.get_event(kPatience);
    REQUIRE(event);
    CHECK(event->context == context);
  }
}

TEST_CASE("A program that arms, polls once more and then sleeps misses no completion") {
  constexpr uint64_t kMessages = 500;
  Told told;
  auto sending = std::async(std::launch::async, [&] {
    // One at a time, each when the one before was answered: never more than are posted.
    for (uint64_t i = 0; i < kMessages; ++i) {
      if (told.source.post_recv(i, 0, 0)) return false;
      if (told.source.send(0, 0, i, SendFlags::signaled)) return false;
      if (!told.source.send_cq.wait(kPatience)) return false;
      if (!told.source.recv_cq.wait(kPatience)) return false;
    }
    return true;
  });
  uint64_t received = 0;
  bool missed = false;
  while (received < kMessages && !missed) {
    told.recv_cq.arm();
    WorkCompletion completion;
    while (told.recv_cq.poll({&completion, 1}) == 0 && !missed)
      missed = !told.channel.get_event(kPatience);
    if (missed || completion.status != WcStatus::success) break;
    ++received;
    if (told.qp.post_recv({}) || told.qp.post_send({}) || !told.send_cq.wait(kPatience)) break;
  }
  if (received != kMessages) told.qp.modify(QpState::error);
  CHECK(sending.get());
  CHECK(received == kMessages);
}

TEST_CASE("A channel's descriptor polls readable while events wait") {
  Told told;
  CHECK_FALSE(readable(told.channel.descriptor(), Duration::zero()));
  told.recv_cq.arm();
  told.message();
  CHECK(readable(told.channel.descriptor(), kPatience));
  CHECK(told.channel.get_event(Duration::zero()));
  CHECK_FALSE(readable(told.channel.descriptor(), Duration::zero()));
}

TEST_CASE("A completion queue without a channel can be armed, to no effect") {
  Pair pair;
  pair.b.recv_cq.arm();
  check_message(pair.a, pair.b);
}

TEST_CASE("An event queue gives nothing after its timeout") {
  const Device device = open_device();
  EventQueue events(device);
  CHECK_FALSE(events.get_event(Duration::zero()));
  CHECK_FALSE(events.get_event(kMoment));
}

TEST_CASE("An event queue's descriptor polls readable while events wait") {
  Pair pair;
  EventQueue events(pair.device_b);
  CHECK_FALSE(readable(events.descriptor(), Duration::zero()));
  pair.a.qp.disconnect();
  CHECK(readable(events.descriptor(), kPatience));
  CHECK(events.get_event(Duration::zero()));
}

TEST_CASE("Each event queue of a device gets every event from its creation on") {
  Pair pair;
  EventQueue one(pair.device_b);
  EventQueue other(pair.device_b);
  pair.a.qp.disconnect();
  next_event(one, AsyncEventType::peer_closed);
  next_event(other, AsyncEventType::peer_closed);
  EventQueue late(pair.device_b);
  CHECK_FALSE(late.get_event(Duration::zero()));
}

}  // namespace diwarp::contract
