// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// Memory windows, fast registrations, and the ways to take STags back.
namespace diwarp::test {

namespace {

constexpr Access kBindable = kOpen | Access::window_bind;

std::error_code bind(RcParty& party, STag window, size_t offset, uint64_t length, Access access,
                     uint64_t base = 0) {
  return party.qp.post_send({.opcode = WrOpcode::bind_window,
                             .binding = {.stag = window,
                                         .region = party.mr->lkey(),
                                         .address = party.memory.data() + offset,
                                         .length = length,
                                         .access = access,
                                         .base = base}});
}

std::error_code invalidate(RcParty& party, STag stag) {
  return party.qp.post_send({.opcode = WrOpcode::local_invalidate, .invalidate_stag = stag});
}

struct Windowed : Couple {
  Windowed()
      : Couple({.access = kOpen}, {.access = kBindable}, {.ready = ReadyToReceive::send}),
        window(b.pd) {}
  MemoryWindow window;
};

}  // namespace

TEST_CASE("A bound window lets the peer write its part of the region, and no more") {
  Windowed scene;
  const STag stag = scene.window.stag();
  REQUIRE_FALSE(bind(scene.b, stag, 1000, 100, Access::remote_write, 0x10));
  scene.a.fill(pattern(200, 1));
  scene.world.settle();
  CHECK(statuses(scene.b.send_cq) == Statuses{WcStatus::success});
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 100, {stag, 0x10}));
  scene.world.settle();
  CHECK(same(scene.b.bytes(1000, 100), scene.a.bytes(0, 100)));
  const std::vector<std::byte> before = scene.b.memory;
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 101, {stag, 0x10}));
  scene.world.settle();
  CHECK(scene.b.memory == before);
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{1, 1, 1});
}

TEST_CASE("A window gives only the rights it was bound with") {
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_read));
  scene.world.settle();
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_read, 0, 100, {scene.window.stag(), 0}));
  scene.world.settle();
  CHECK(statuses(scene.a.send_cq) == Statuses{WcStatus::success});
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 100, {scene.window.stag(), 0}));
  scene.world.settle();
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{0, 1, 2});
}

TEST_CASE("An unbound window names nothing") {
  Windowed scene;
  CHECK_FALSE(scene.window.query().valid);
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 1, {scene.window.stag(), 0}));
  scene.world.settle();
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{1, 1, 0});
}

TEST_CASE("A window is for the peer of the queue pair that bound it") {
  Windowed scene;
  RcParty c(scene.world.add_device());
  RcParty d(scene.device_of_b());
  const QueuePair other(scene.b.pd, {.send_cq = d.send_cq, .recv_cq = d.recv_cq});
  auto& impl = software(other);
  auto ends = llp::memory_stream_pair(1 << 20, 256);
  c.impl().start(negotiated(std::move(ends.first), true));
  impl.start(negotiated(std::move(ends.second), false));
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_write));
  scene.world.settle();
  REQUIRE_FALSE(c.post(WrOpcode::rdma_write, 0, 1, {scene.window.stag(), 0}));
  scene.world.settle();
  CHECK(c.qp.query().terminate->code == TerminateCode{1, 1, 2});
  CHECK(scene.b.qp.state() == QpState::rts);
}

TEST_CASE("A window that was invalidated is bound anew under a new key, and the old STag is dead") {
  Windowed scene;
  const STag first = scene.window.stag();
  const STag second = (first & ~STag{0xff}) | ((first + 1) & 0xff);
  REQUIRE_FALSE(bind(scene.b, first, 0, 100, Access::remote_write));
  REQUIRE_FALSE(invalidate(scene.b, first));
  REQUIRE_FALSE(bind(scene.b, second, 200, 100, Access::remote_write));
  scene.world.settle();
  CHECK(statuses(scene.b.send_cq) == Statuses(3, WcStatus::success));
  const SteeringTagAttributes attributes = scene.window.query();
  CHECK(attributes.stag == second);
  CHECK(attributes.valid);
  CHECK(attributes.length == 100);
  CHECK(attributes.access == Access::remote_write);
  scene.a.fill(text("new"));
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 3, {second, 0}));
  scene.world.settle();
  CHECK(same(scene.b.bytes(200, 3), text("new")));
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 3, {first, 0}));
  scene.world.settle();
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{1, 1, 0});
}

TEST_CASE("A window that cannot be bound fails at the queue pair") {
  Windowed scene;
  SECTION("a range outside of the region") {
    REQUIRE_FALSE(
        bind(scene.b, scene.window.stag(), 1, scene.b.memory.size(), Access::remote_read));
  }
  SECTION("a window that is bound already") {
    REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 10, Access::remote_read));
    REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 10, Access::remote_read));
  }
  SECTION("an STag that is not a window") {
    REQUIRE_FALSE(bind(scene.b, scene.b.mr->lkey(), 0, 10, Access::remote_read));
  }
  scene.world.settle();
  CHECK(statuses(scene.b.send_cq).back() == WcStatus::window_bind_error);
  CHECK(scene.b.qp.state() == QpState::error);
}

TEST_CASE("A region without window_bind takes no windows") {
  Couple couple({}, {.access = kOpen});
  const MemoryWindow window(couple.b.pd);
  REQUIRE_FALSE(bind(couple.b, window.stag(), 0, 10, Access::remote_read));
  couple.world.settle();
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::window_bind_error});
}

TEST_CASE("A Send with Invalidate takes a window back, and the receiver is told") {
  Windowed scene;
  const STag stag = scene.window.stag();
  const bool solicited = GENERATE(false, true);
  REQUIRE_FALSE(bind(scene.b, stag, 0, 100, Access::remote_write));
  scene.b.post_receives(1, 10);
  scene.world.settle();
  REQUIRE_FALSE(scene.a.qp.post_send(
      {.flags = solicited ? SendFlags::signaled | SendFlags::solicited : SendFlags::signaled,
       .opcode = WrOpcode::send_with_invalidate,
       .invalidate_stag = stag}));
  scene.world.settle();
  const auto received = drain(scene.b.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::success);
  CHECK(received[0].invalidated);
  CHECK(received[0].invalidated_stag == stag);
  CHECK(received[0].solicited == solicited);
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 1, {stag, 0}));
  scene.world.settle();
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{1, 1, 0});
}

TEST_CASE("A peer invalidates a region only where its owner allows it") {
  const bool allowed = GENERATE(true, false);
  Couple couple({}, {.access = allowed ? kOpen | Access::remote_invalidate : kOpen});
  std::vector<std::byte> memory(10);
  const MemoryRegion sink(couple.b.pd, memory);
  const Sge sge = sink.sge();
  REQUIRE_FALSE(couple.b.qp.post_recv({.sges = {&sge, 1}}));
  REQUIRE_FALSE(couple.a.qp.post_send(
      {.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = couple.b.mr->rkey()}));
  couple.world.settle();
  CHECK(couple.b.mr->valid() == !allowed);
  CHECK((couple.b.qp.state() == QpState::rts) == allowed);
  CHECK(statuses(couple.b.recv_cq) ==
        Statuses{allowed ? WcStatus::success : WcStatus::general_error});
  if (!allowed) {
    CHECK(couple.a.qp.query().terminate->code == TerminateCode{0, 1, 9});
  }
}

TEST_CASE("A Send that invalidates what is not there ends the connection") {
  Couple couple;
  couple.b.post_receives(1, 10);
  REQUIRE_FALSE(couple.a.qp.post_send(
      {.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = 0x12345678}));
  couple.world.settle();
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.a.qp.query().terminate->code.layer == 0);
}

TEST_CASE("A fast registration names memory once it is registered, also for the own side") {
  Couple couple({.access = kOpen}, {});
  const FastRegistration fast(couple.b.pd, 4096);
  std::vector<std::byte> memory(4096);
  const MemoryBinding binding{.stag = fast.stag(),
                              .address = memory.data(),
                              .length = memory.size(),
                              .access = Access::local_write | Access::remote_write,
                              .base = 0x2000};
  REQUIRE_FALSE(couple.b.qp.post_send({.opcode = WrOpcode::register_memory, .binding = binding}));
  couple.world.settle();
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::success});
  couple.a.fill(text("fast"));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 4, {fast.stag(), 0x2001}));
  const Sge sge{memory.data() + 100, 4, fast.stag()};
  REQUIRE_FALSE(couple.b.qp.post_recv({.sges = {&sge, 1}}));
  REQUIRE_FALSE(couple.a.send(0, 4));
  couple.world.settle();
  CHECK(same(std::span(memory).subspan(1, 4), text("fast")));
  CHECK(same(std::span(memory).subspan(100, 4), text("fast")));

  REQUIRE_FALSE(invalidate(couple.b, fast.stag()));
  couple.world.settle();
  drain(couple.b.send_cq);
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 4, {fast.stag(), 0x2001}));
  couple.world.settle();
  CHECK(couple.a.qp.query().terminate->code == TerminateCode{1, 1, 0});
}

TEST_CASE("A fast registration holds no more than it was made for") {
  Couple couple;
  const FastRegistration fast(couple.b.pd, 100);
  std::vector<std::byte> memory(200);
  REQUIRE_FALSE(couple.b.qp.post_send(
      {.opcode = WrOpcode::register_memory,
       .binding = {.stag = fast.stag(), .address = memory.data(), .length = 101}}));
  couple.world.settle();
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::window_bind_error});
}

TEST_CASE("A Read with Invalidate takes its own sink back when it is done") {
  Couple couple({.access = kOpen}, {.access = kOpen});
  const FastRegistration fast(couple.a.pd, 4096);
  std::vector<std::byte> memory(100);
  couple.b.fill(pattern(100, 8));
  REQUIRE_FALSE(couple.a.qp.post_send({.opcode = WrOpcode::register_memory,
                                       .binding = {.stag = fast.stag(),
                                                   .address = memory.data(),
                                                   .length = memory.size(),
                                                   .access = Access::local_write}}));
  const Sge sge{memory.data(), 100, fast.stag()};
  REQUIRE_FALSE(couple.a.qp.post_send({.sges = {&sge, 1},
                                       .opcode = WrOpcode::rdma_read_with_invalidate,
                                       .remote = couple.b.remote()}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::success, WcStatus::success});
  CHECK(same(memory, pattern(100, 8)));
  REQUIRE_FALSE(couple.a.qp.post_recv({.sges = {&sge, 1}}));
  REQUIRE_FALSE(couple.b.send(0, 10));
  couple.world.settle();
  CHECK(statuses(couple.a.recv_cq) == Statuses{WcStatus::local_protection_error});
}

TEST_CASE("A window dies with its region") {
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_write));
  scene.world.settle();
  scene.b.mr.reset();
  CHECK_FALSE(scene.window.query().valid);
  REQUIRE_FALSE(scene.a.post(WrOpcode::rdma_write, 0, 1, {scene.window.stag(), 0}));
  scene.world.settle();
  CHECK(scene.a.qp.query().terminate->code == TerminateCode{1, 1, 0});
}

TEST_CASE("Binding waits for the sends before it") {
  Windowed scene;
  scene.b.fill(pattern(60000, 3));
  scene.a.post_receives(1, 60000);
  REQUIRE_FALSE(scene.b.send(0, 60000, 1));
  REQUIRE_FALSE(invalidate(scene.b, scene.b.mr->lkey()));
  scene.world.settle();
  CHECK(statuses(scene.b.send_cq) == Statuses{WcStatus::success, WcStatus::success});
  CHECK(same(scene.a.bytes(0, 60000), pattern(60000, 3)));
  CHECK_FALSE(scene.b.mr->valid());
}

}  // namespace diwarp::test
