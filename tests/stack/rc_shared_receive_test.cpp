// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// Shared receive queues: several queue pairs take from one.
namespace diwarp::test {

namespace {

/// Two connections to queue pairs of one device that share their receives.
struct Shared {
  explicit Shared(const SharedReceiveQueueOptions& options = {})
      : device(world.add_device()),
        pd(device),
        cq(device, 256),
        srq(pd, options),
        first(pd, {.send_cq = cq, .recv_cq = cq, .srq = srq}),
        second(pd, {.send_cq = cq, .recv_cq = cq, .srq = srq}),
        memory(64 << 10),
        mr(pd, std::span(memory)),
        a(world.add_device()),
        b(world.add_device()) {
    for (auto [party, qp] : {std::pair(&a, &first), std::pair(&b, &second)}) {
      auto ends = llp::memory_stream_pair(1 << 20, 256);
      party->impl().start(negotiated(std::move(ends.first), true));
      auto& impl = software(*qp);
      impl.start(negotiated(std::move(ends.second), false));
    }
  }
  std::error_code post(uint64_t wr_id, size_t length = 100) {
    const Sge sge = mr.sge(wr_id * length, length);
    return srq.post_recv({.wr_id = wr_id, .sges = {&sge, 1}});
  }

  World world;
  Device& device;
  ProtectionDomain pd;
  CompletionQueue cq;
  SharedReceiveQueue srq;
  QueuePair first;
  QueuePair second;
  std::vector<std::byte> memory;
  MemoryRegion mr;
  RcParty a;
  RcParty b;
};

}  // namespace

TEST_CASE("Messages of several connections take the shared receives in the order they come") {
  Shared scene;
  for (uint64_t i = 0; i < 4; ++i) REQUIRE_FALSE(scene.post(i));
  scene.a.fill(pattern(100, 1));
  scene.b.fill(pattern(100, 2));
  for (RcParty* party : {&scene.b, &scene.a, &scene.b}) {
    REQUIRE_FALSE(party->send(0, 100));
    scene.world.settle();
  }
  const auto received = drain(scene.cq);
  REQUIRE(received.size() == 3);
  CHECK(received[0].qp_number == scene.second.number());
  CHECK(received[1].qp_number == scene.first.number());
  for (size_t i = 0; i < 3; ++i) CHECK(received[i].wr_id == i);
  CHECK(same(std::span(scene.memory).first(100), pattern(100, 2)));
  CHECK(same(std::span(scene.memory).subspan(100, 100), pattern(100, 1)));
  CHECK(scene.srq.query().posted == 1);
}

TEST_CASE("All connections that wait go on when shared receives are posted") {
  Shared scene;
  REQUIRE_FALSE(scene.a.send(0, 10));
  REQUIRE_FALSE(scene.b.send(0, 20));
  scene.world.settle();
  CHECK(drain(scene.cq).empty());
  REQUIRE_FALSE(scene.post(0));
  REQUIRE_FALSE(scene.post(1));
  scene.world.settle();
  CHECK(statuses(scene.cq) == Statuses{WcStatus::success, WcStatus::success});
}

TEST_CASE("The limit of a shared receive queue is told once, until it is set again") {
  Shared scene({.limit = 3, .context = 99});
  EventQueue events(scene.device);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE_FALSE(scene.post(i));
  const auto send = [&] {
    REQUIRE_FALSE(scene.a.send(0, 1));
    scene.world.settle();
    return events.get_event(Duration::zero());
  };
  CHECK_FALSE(send());  // 4 are left
  CHECK_FALSE(send());  // 3
  const std::optional<AsyncEvent> event = send();
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::srq_limit_reached);
  CHECK(event->context == 99);
  CHECK_FALSE(send());  // disarmed
  CHECK(scene.srq.query().limit == 0);
  scene.srq.set_limit(2);  // there are fewer already
  CHECK(events.get_event(Duration::zero()));
}

TEST_CASE("A queue pair that fails leaves the shared receives to the others, and says when") {
  Shared scene;
  EventQueue events(scene.device);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.post(i));
  scene.first.modify(QpState::error);
  const std::optional<AsyncEvent> event = events.get_event(Duration::zero());
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::last_wqe_reached);
  CHECK(event->qp_number == scene.first.number());
  CHECK(drain(scene.cq).empty());
  REQUIRE_FALSE(scene.b.send(0, 10));
  scene.world.settle();
  CHECK(statuses(scene.cq) == Statuses{WcStatus::success});
  CHECK(scene.srq.query().posted == 2);
}

TEST_CASE("A message that breaks off gives its shared receive back to the completion queue") {
  Shared scene;
  REQUIRE_FALSE(scene.post(7));
  auto& first = software(scene.first);
  scene.first.modify(QpState::error);
  scene.first.modify(QpState::reset);
  scene.first.modify(QpState::init);
  auto ends = llp::memory_stream_pair(1 << 20, 256);
  first.start(negotiated(std::move(ends.second), false));
  write(*ends.first, fpdu_bytes(Fpdu{.last = false, .payload = text("half")}));
  scene.world.settle();
  ends.first->abort();
  scene.world.settle();
  const auto done = drain(scene.cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 7);
  CHECK(done[0].status == WcStatus::general_error);
}

TEST_CASE("A shared receive that comes back from a broken stream goes to a queue pair that waits") {
  Shared scene;
  REQUIRE_FALSE(scene.post(0, 40'000));
  std::optional<QueuePair> third(
      std::in_place, scene.pd,
      QueuePairInit{.send_cq = scene.cq, .recv_cq = scene.cq, .srq = scene.srq});
  auto ends = llp::memory_stream_pair(1 << 20, 65480);
  software(*third).start(negotiated(std::move(ends.second), false, {.crc = false}));
  const std::vector<std::byte> fpdu =
      fpdu_bytes(Fpdu{.payload = std::vector<std::byte>(30'000, std::byte{0xEE})});
  const auto half = std::span(fpdu).first(15'000);
  write(*ends.first, half);
  scene.world.settle();
  CHECK(scene.srq.query().posted == 0);
  scene.a.fill(pattern(100, 1));
  REQUIRE_FALSE(scene.a.send(0, 100));
  scene.world.settle();
  CHECK(drain(scene.cq).empty());
  SECTION("the stream is lost") { ends.first->abort(); }
  SECTION("the queue pair is destroyed") { third.reset(); }
  SECTION("the queue pair is reset") {
    third->modify(QpState::error);
    third->modify(QpState::reset);
  }
  scene.world.settle();
  CHECK(statuses(scene.cq) == Statuses{WcStatus::success});
  CHECK(same(std::span(scene.memory).first(100), pattern(100, 1)));
}

TEST_CASE("After a message that an ending connection discards no other is delivered") {
  Shared scene;
  QueuePair third(scene.pd, {.send_cq = scene.cq, .recv_cq = scene.cq, .srq = scene.srq});
  auto& impl = software(third);
  auto ends = llp::memory_stream_pair(1 << 20, 65480);
  impl.start(negotiated(std::move(ends.second), false, {.crc = false}));
  software(scene.device).engine().exclusively([&] { impl.begin_disconnect(); });
  write(*ends.first, fpdu_bytes(Fpdu{.msn = 1, .payload = text("finds no receive")}));
  scene.world.settle();
  REQUIRE_FALSE(scene.post(0, 40'000));
  SECTION("a short one") {
    write(*ends.first, fpdu_bytes(Fpdu{.msn = 2, .payload = text("finds one")}));
  }
  SECTION("a long one, in two parts") {
    const std::vector<std::byte> fpdu =
        fpdu_bytes(Fpdu{.msn = 2, .payload = std::vector<std::byte>(30'000, std::byte{0xEE})});
    write(*ends.first, std::span(fpdu).first(15'000));
    scene.world.settle();
    write(*ends.first, std::span(fpdu).subspan(15'000));
  }
  scene.world.settle();
  CHECK(drain(scene.cq).empty());
  CHECK(scene.srq.query().posted == 1);
  CHECK(same(std::span(scene.memory).first(40'000), std::vector<std::byte>(40'000)));
}

TEST_CASE("A queue pair with a shared receive queue takes no receives of its own") {
  Shared scene;
  CHECK(scene.first.post_recv({}) == Errc::unsupported_operation);
}

TEST_CASE("A destroyed queue pair leaves the shared queue whole") {
  Shared scene;
  {
    const QueuePair third(scene.pd, {.send_cq = scene.cq, .recv_cq = scene.cq, .srq = scene.srq});
    auto ends = llp::memory_stream_pair(1 << 20, 256);
    software(third).start(negotiated(std::move(ends.second), false));
    write(*ends.first, fpdu_bytes(Fpdu{.payload = text("wait")}));
    scene.world.settle();  // it waits for a receive
  }
  REQUIRE_FALSE(scene.post(0));
  REQUIRE_FALSE(scene.a.send(0, 10));
  scene.world.settle();
  CHECK(statuses(scene.cq) == Statuses{WcStatus::success});
}

TEST_CASE("A shared receive queue is bounded, and belongs to one protection domain") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain one(device);
  const ProtectionDomain other(device);
  const CompletionQueue cq(device, 4);
  SharedReceiveQueue srq(one, {.max_wr = 2, .max_sge = 1});
  CHECK_FALSE(srq.post_recv({}));
  CHECK_FALSE(srq.post_recv({}));
  CHECK(srq.post_recv({}) == Errc::queue_full);
  CHECK_THROWS_AS(QueuePair(other, {.send_cq = cq, .recv_cq = cq, .srq = srq}), Error);
  CHECK_THROWS_AS(SharedReceiveQueue(one, {.max_wr = 0}), Error);
  CHECK_THROWS_AS(SharedReceiveQueue(one, {.max_wr = 4, .limit = 5}), Error);
  CHECK_THROWS_AS(srq.set_limit(3), Error);
}

TEST_CASE("Datagram queue pairs may share receives, too") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  CompletionQueue cq(device, 64);
  SharedReceiveQueue srq(pd);
  std::vector<std::byte> memory(1000);
  const MemoryRegion mr(pd, std::span(memory));
  const QueuePairInit init{.type = QpType::ud, .send_cq = cq, .recv_cq = cq, .srq = srq};
  QueuePair one(pd, init);
  QueuePair other(pd, init);
  const Sge sge = mr.sge(0, 500);
  REQUIRE_FALSE(srq.post_recv({.wr_id = 1, .sges = {&sge, 1}}));
  REQUIRE_FALSE(srq.post_recv({.wr_id = 2, .sges = {&sge, 1}}));
  for (const QueuePair* to : {&one, &other})
    REQUIRE_FALSE(one.post_send({.flags = SendFlags::none, .destination = to->address()}));
  world.settle();
  const auto received = drain(cq);
  REQUIRE(received.size() == 2);
  CHECK(received[0].qp_number != received[1].qp_number);
}

}  // namespace diwarp::test
