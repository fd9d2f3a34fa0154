// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// Shared receive queues.
namespace diwarp::contract {

namespace {

constexpr size_t kBytes = 100;  // of each receive

/// Two connections to queue pairs that share their receives.
struct Shared {
  explicit Shared(const SharedReceiveQueueOptions& options = {}) : srq(pd, options) {
    join(a.qp, first, device);
    join(b.qp, second, device);
  }
  std::error_code post(uint64_t wr_id) {
    return srq.post_recv({.wr_id = wr_id, .sges = mr.sge(wr_id * kBytes, kBytes)});
  }
  /// A message from this one arrives.
  WorkCompletion message(Party& from, uint64_t key = 1) {
    from.fill(0, 50, key);
    REQUIRE_FALSE(from.send(0, 50));
    next_good(from.send_cq);
    return next_good(cq);
  }

  Device device = open_device();
  Device peer = open_peer();
  ProtectionDomain pd{device};
  CompletionQueue cq{device, 256};
  SharedReceiveQueue srq;
  QueuePair first{pd, {.send_cq = cq, .recv_cq = cq, .srq = srq}};
  QueuePair second{pd, {.send_cq = cq, .recv_cq = cq, .srq = srq}};
  Pages pages{64 << 10};
  MemoryRegion mr{pd, pages.bytes()};
  Party a{peer};
  Party b{peer};
};

}  // namespace

TEST_CASE("Messages of several connections take the shared receives in the order they come") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene;
  for (uint64_t i = 0; i < 8; ++i) REQUIRE_FALSE(scene.post(i));
  uint64_t taken = 0;
  for (Party* from : {&scene.b, &scene.a, &scene.a, &scene.b}) {
    const WorkCompletion received = scene.message(*from, taken);
    CHECK(received.wr_id == taken);
    CHECK(received.qp_number == (from == &scene.a ? scene.first.number() : scene.second.number()));
    CHECK_FALSE(test::first_wrong(scene.pages.bytes().subspan(taken * kBytes, 50), taken));
    ++taken;
  }
  CHECK(scene.srq.query().posted == 4);
}

TEST_CASE("A shared receive queue tells its size, and says queue_full when it is full") {
  if (!needs(Capability::shared_receive_queues)) return;
  const Device device = open_device();
  const ProtectionDomain pd(device);
  SharedReceiveQueue srq(pd, {.max_wr = 16, .max_sge = 2});
  const SharedReceiveQueueAttributes attributes = srq.query();
  CHECK(attributes.max_wr >= 16);
  CHECK(attributes.max_sge >= 2);
  CHECK(attributes.posted == 0);
  uint64_t posted = 0;
  std::error_code error;
  while (!(error = srq.post_recv({.wr_id = posted})) && posted < 100'000) ++posted;
  CHECK(error == Errc::queue_full);
  CHECK(posted >= 16);
  CHECK(srq.query().posted == posted);
}

TEST_CASE("Of shared receives posted together, those before the first refused one are posted") {
  if (!needs(Capability::shared_receive_queues)) return;
  const Device device = open_device();
  const ProtectionDomain pd(device);
  SharedReceiveQueue srq(pd, {.max_wr = 16, .max_sge = 1});
  const std::vector<Sge> too_many(srq.query().max_sge + 1);
  std::vector<ReceiveWorkRequest> requests(4);
  requests[2].sges = too_many;
  size_t posted = 99;
  CHECK(srq.post_recvs(requests, posted) == Errc::too_many_sges);
  CHECK(posted == 2);
  CHECK(srq.query().posted == 2);
}

TEST_CASE("A shared receive queue with an option out of its range is refused") {
  if (!needs(Capability::shared_receive_queues)) return;
  const Device device = open_device();
  const ProtectionDomain pd(device);
  CHECK(refusal([&] { SharedReceiveQueue(pd, {.max_wr = 0}); }) == Errc::invalid_argument);
  CHECK(refusal([&] { SharedReceiveQueue(pd, {.max_sge = 0}); }) == Errc::invalid_argument);
}

TEST_CASE("A queue pair with a shared receive queue takes no receives of its own") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene;
  CHECK(scene.first.post_recv({}) == Errc::unsupported_operation);
}

TEST_CASE("The limit of a shared receive queue is told once, when fewer are posted") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene({.limit = 3, .context = 99});
  EventQueue events(scene.device);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE_FALSE(scene.post(i));
  scene.message(scene.a);
  scene.message(scene.a);  // three are left
  CHECK_FALSE(events.get_event(kMoment));
  scene.message(scene.a);
  const AsyncEvent event = next_event(events, AsyncEventType::srq_limit_reached);
  CHECK(event.context == 99);
  CHECK(scene.srq.query().limit == 0);
  scene.message(scene.a);
  CHECK_FALSE(events.get_event(kMoment));
}

TEST_CASE("A limit that is set when fewer are posted already is told at once") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene;
  EventQueue events(scene.device);
  REQUIRE_FALSE(scene.post(0));
  CHECK_FALSE(events.get_event(Duration::zero()));
  scene.srq.set_limit(2);
  next_event(events, AsyncEventType::srq_limit_reached);
}

TEST_CASE("A queue pair that fails leaves the shared receives to the others, and says when") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene;
  EventQueue events(scene.device);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.post(i));
  scene.first.modify(QpState::error);
  CHECK(next_event(events, AsyncEventType::last_wqe_reached).qp_number == scene.first.number());
  CHECK(scene.srq.query().posted == 3);
  CHECK(scene.message(scene.b).wr_id == 0);
}

TEST_CASE("Messages that wait for a shared receive go on when some are posted") {
  if (!needs(Capability::shared_receive_queues | Capability::held_messages)) return;
  Shared scene;
  REQUIRE_FALSE(scene.a.send(0, 10));
  REQUIRE_FALSE(scene.b.send(0, 20));
  CHECK_FALSE(scene.cq.wait(kMoment));
  REQUIRE_FALSE(scene.post(0));
  REQUIRE_FALSE(scene.post(1));
  const uint32_t first = next_good(scene.cq).byte_count;
  CHECK(first + next_good(scene.cq).byte_count == 30);
}

TEST_CASE("A shared receive queue outlives a queue pair that is destroyed") {
  if (!needs(Capability::shared_receive_queues)) return;
  Shared scene;
  Party other(scene.peer);
  for (uint64_t i = 0; i < 2; ++i) REQUIRE_FALSE(scene.post(i));
  {
    QueuePair third(scene.pd, {.send_cq = scene.cq, .recv_cq = scene.cq, .srq = scene.srq});
    join(other.qp, third, scene.device);
    scene.message(other);
  }
  CHECK(scene.message(scene.a).wr_id == 1);
}

}  // namespace diwarp::contract
