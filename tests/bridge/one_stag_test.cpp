// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "bridge/datagrams.h"

/// Memory that connections and datagrams reach under one STag, until either takes it back.
namespace diwarp::bridge_test {

namespace {

/// Both kinds of queue pairs on both devices, and memory of b's.
struct Scene {
  explicit Scene(Access access) : access_of_b(access) { join(a.qp, b.qp, devices.b); }

  /// Writes of both kinds come into b's memory.
  void check_both_write(uint64_t key = 1) {
    a.fill(0, 100, key);
    REQUIRE_FALSE(b.post_recv(1, 4000, 0));
    REQUIRE_FALSE(a.write(0, 100, b.remote(1000)));
    REQUIRE_FALSE(a.send(0, 0));
    take(a.send_cq, 2);
    next_good(b.recv_cq);
    CHECK(b.holds(1000, 100, key));
    check_record(from, to, 2000, key + 1);
  }
  /// A Write over the connection is refused, and ends it.
  void check_write_refused() {
    b.clear();
    a.fill(0, 100, 9);
    REQUIRE_FALSE(a.write(0, 100, b.remote(1000)));
    CHECK(a.qp.wait_disconnected(kPatience));
    CHECK(b.is_zero(1000, 100));
  }
  /// The peer asks for it; the completion that tells is the application's to take.
  void invalidate_by_datagram() {
    REQUIRE_FALSE(to.qp.post_recv({.wr_id = 1}));
    REQUIRE_FALSE(from.qp.post_send({.destination = to.qp.address(),
                                     .opcode = WrOpcode::send_with_invalidate,
                                     .invalidate_stag = b.mr->rkey()}));
  }
  bool readable_by_datagrams() { return can_read(from, to, b.remote(0)); }

  const Access access_of_b;
  Devices devices;
  Party a{devices.a};
  Party b{devices.b, {.access = access_of_b}};
  Datagrams from{devices.a, a};
  Datagrams to{devices.b, b};
};

constexpr Access kForAll = kOpen | Access::any_source;

/// The same STag with another key.
STag with_next_key(STag stag) { return (stag & ~STag{0xff}) | ((stag + 1) & 0xff); }

}  // namespace

TEST_CASE("A region's STag serves a Write over a connection and a Write-Record over datagrams") {
  const Fresh fresh;
  Scene scene(kForAll);
  CHECK(scene.b.mr->rkey() == scene.b.mr->lkey());
  scene.check_both_write();
}

TEST_CASE("Without any_source, a Write-Record is taken once the peer has shown its address") {
  const Fresh fresh;
  Scene scene(kOpen);
  scene.a.fill(0, 100, 1);
  const RemoteMemory remote = scene.b.remote(2000);
  REQUIRE_FALSE(scene.from.write_record(scene.to, 0, 100, remote));
  next_good(scene.from.send_cq);
  CHECK(eventually([&] { return scene.devices.b.counter("drop_unvalidated") == 1; }));
  CHECK(scene.b.is_zero(2000, 100));
  CHECK(can_read(scene.from, scene.to, scene.b.remote(0)));
  scene.check_both_write(4);
}

TEST_CASE("A region gets another STag where software has given the hardware's to something else") {
  const Fresh fresh;
  Scene scene(kForAll);
  const FastRegistration taken(scene.b.pd, 4096);
  fake().choose_key(taken.stag());
  scene.b.mr.emplace(scene.b.pd, scene.b.pages.bytes(), kForAll);
  CHECK(scene.b.mr->rkey() != taken.stag());
  scene.check_both_write();
}

TEST_CASE("Where all STags that the hardware gives are in use in software, that is told") {
  const Fresh fresh;
  Scene scene(kForAll);
  std::vector<FastRegistration> taken;
  for (int i = 0; i < 16; ++i) fake().choose_key(taken.emplace_back(scene.b.pd, 4096).stag());
  const Pages pages(4096);
  const int objects = fake().objects();
  CHECK(refusal([&] { MemoryRegion(scene.b.pd, pages.bytes()); }) == Errc::no_resources);
  CHECK(fake().objects() == objects);
  CHECK_FALSE(refusal([&] { MemoryRegion(scene.b.pd, pages.bytes()); }));
}

TEST_CASE("A peer's invalidation over a connection has datagrams refused before it is told") {
  const Fresh fresh;
  Scene scene(kForAll | Access::remote_invalidate);
  REQUIRE(scene.readable_by_datagrams());
  REQUIRE_FALSE(scene.b.post_recv(1, 0, 0));
  REQUIRE_FALSE(scene.a.qp.post_send(
      {.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = scene.b.mr->rkey()}));
  const WorkCompletion told = next_good(scene.b.recv_cq);
  CHECK(told.invalidated);
  CHECK_FALSE(scene.b.mr->valid());
  CHECK_FALSE(scene.readable_by_datagrams());
  scene.check_write_refused();
}

TEST_CASE("A peer's invalidation over datagrams has connections refused before it is told") {
  const Fresh fresh;
  Scene scene(kForAll | Access::remote_invalidate);
  scene.invalidate_by_datagram();
  const WorkCompletion told = next_good(scene.to.recv_cq);
  CHECK(told.invalidated);
  CHECK(told.invalidated_stag == scene.b.mr->rkey());
  CHECK_FALSE(scene.b.mr->valid());
  scene.check_write_refused();
  next_good(scene.from.send_cq);
  CHECK_FALSE(scene.readable_by_datagrams());
}

TEST_CASE("What its owner invalidates on a connection is invalid for datagrams") {
  const Fresh fresh;
  Scene scene(kForAll);
  REQUIRE_FALSE(scene.b.qp.post_send(
      {.opcode = WrOpcode::local_invalidate, .invalidate_stag = scene.b.mr->rkey()}));
  next_good(scene.b.send_cq);
  CHECK_FALSE(scene.b.mr->valid());
  CHECK_FALSE(scene.readable_by_datagrams());
}

TEST_CASE("What its owner invalidates over datagrams is invalid for connections") {
  const Fresh fresh;
  Scene scene(kForAll);
  REQUIRE_FALSE(scene.to.qp.post_send(
      {.opcode = WrOpcode::local_invalidate, .invalidate_stag = scene.b.mr->rkey()}));
  next_good(scene.to.send_cq);
  CHECK_FALSE(scene.b.mr->valid());
  scene.check_write_refused();
}

TEST_CASE("A region that was invalidated can be destroyed, and its memory registered again") {
  const Fresh fresh;
  Scene scene(kForAll | Access::remote_invalidate);
  scene.invalidate_by_datagram();
  next_good(scene.to.recv_cq);
  scene.b.mr.emplace(scene.b.pd, scene.b.pages.bytes(), kForAll);
  scene.check_both_write();
}

TEST_CASE("A window that a connection binds is the peer's of that connection") {
  const Fresh fresh;
  Scene scene(kForAll | Access::window_bind);
  const MemoryWindow window(scene.b.pd);
  REQUIRE_FALSE(scene.b.qp.post_send({.opcode = WrOpcode::bind_window,
                                      .binding = {.stag = with_next_key(window.stag()),
                                                  .region = scene.b.mr->lkey(),
                                                  .address = scene.b.bytes(500, 0).data(),
                                                  .length = 100,
                                                  .access = Access::remote_write}}));
  CHECK(next_good(scene.b.send_cq).opcode == WcOpcode::bind_window);
  CHECK(window.query().valid);
  CHECK(window.query().length == 100);
  scene.a.fill(0, 100, 6);
  REQUIRE_FALSE(scene.b.post_recv(1, 4000, 0));
  REQUIRE_FALSE(scene.a.write(0, 100, {with_next_key(window.stag()), 0}));
  REQUIRE_FALSE(scene.a.send(0, 0));
  next_good(scene.b.recv_cq);
  CHECK(scene.b.holds(500, 100, 6));
  scene.b.mr.reset();
  CHECK_FALSE(window.query().valid);
}

TEST_CASE("A peer may take a region back while requests to bind a window on it are posted") {
  const Fresh fresh;
  for (int round = 0; round < 30; ++round) {
    Scene scene(kForAll | Access::window_bind | Access::remote_invalidate);
    const MemoryWindow window(scene.b.pd);
    SendWorkRequest bind = {.opcode = WrOpcode::bind_window,
                            .binding = {.stag = window.stag(),
                                        .region = scene.b.mr->lkey(),
                                        .address = scene.b.bytes(500, 0).data(),
                                        .length = 100,
                                        .access = Access::remote_read}};
    scene.invalidate_by_datagram();
    std::error_code refused;
    for (uint64_t i = 0; !refused; ++i) {
      REQUIRE(i < 1'000'000);
      bind.binding.stag = with_next_key(bind.binding.stag);
      refused = scene.b.qp.post_send(bind);
      std::array<WorkCompletion, 8> done;
      static_cast<void>(scene.b.send_cq.poll(done));
      if (refused == Errc::queue_full) refused = {};
    }
    CHECK((refused == Errc::invalid_argument || refused == Errc::invalid_state));
    next_good(scene.to.recv_cq);
    CHECK_FALSE(scene.b.mr->valid());
  }
}

TEST_CASE("A window is bound again and again though nobody polls for the completions") {
  const Fresh fresh;
  Scene scene(kForAll | Access::window_bind);
  const MemoryWindow window(scene.b.pd);
  SendWorkRequest bind = {.flags = SendFlags::none,
                          .opcode = WrOpcode::bind_window,
                          .binding = {.stag = window.stag(),
                                      .region = scene.b.mr->lkey(),
                                      .address = scene.b.bytes(500, 0).data(),
                                      .length = 100,
                                      .access = Access::remote_read}};
  for (uint64_t i = 0; i < 40; ++i) {  // the device's completions are all there
    REQUIRE_FALSE(scene.a.post_recv(i, 0, 10));
    REQUIRE_FALSE(scene.b.qp.post_send(bind));
    REQUIRE_FALSE(scene.b.qp.post_send({.flags = SendFlags::none,
                                        .opcode = WrOpcode::local_invalidate,
                                        .invalidate_stag = bind.binding.stag}));
    REQUIRE_FALSE(scene.b.send(0, 0, i, SendFlags::none));
    next_good(scene.a.recv_cq);
    bind.binding.stag = with_next_key(bind.binding.stag);
  }
}

TEST_CASE("A window that a queue pair over datagrams binds is for datagrams") {
  const Fresh fresh;
  Scene scene(kForAll | Access::window_bind);
  const MemoryWindow window(scene.b.pd);
  const STag stag = with_next_key(window.stag());
  REQUIRE_FALSE(scene.to.qp.post_send({.opcode = WrOpcode::bind_window,
                                       .binding = {.stag = stag,
                                                   .region = scene.b.mr->lkey(),
                                                   .address = scene.b.bytes(500, 0).data(),
                                                   .length = 100,
                                                   .access = Access::remote_read}}));
  CHECK(next_good(scene.to.send_cq).opcode == WcOpcode::bind_window);
  CHECK(window.query().valid);
  scene.b.fill(500, 100, 7);
  CHECK(can_read(scene.from, scene.to, {stag, 0}));
  CHECK(scene.a.holds(0, 100, 7));
}

TEST_CASE("A device without memory windows has those of datagrams still") {
  const Fresh fresh;
  fake().deny("memory-windows", 1);
  Scene scene(kForAll | Access::window_bind);
  const MemoryWindow window(scene.b.pd);
  const MemoryBinding binding = {.stag = with_next_key(window.stag()),
                                 .region = scene.b.mr->lkey(),
                                 .address = scene.b.bytes(500, 0).data(),
                                 .length = 100,
                                 .access = Access::remote_read};
  CHECK(scene.b.qp.post_send({.opcode = WrOpcode::bind_window, .binding = binding}) ==
        Errc::unsupported_operation);
  REQUIRE_FALSE(scene.to.qp.post_send({.opcode = WrOpcode::bind_window, .binding = binding}));
  CHECK(next_good(scene.to.send_cq).opcode == WcOpcode::bind_window);
  CHECK(can_read(scene.from, scene.to, {binding.stag, 0}));
}

}  // namespace diwarp::bridge_test
