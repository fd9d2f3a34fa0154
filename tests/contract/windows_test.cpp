// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// Memory windows, and memory that is registered by a request.
namespace diwarp::contract {

namespace {

constexpr Access kBindable = kOpen | Access::window_bind;

/// The same STag with another key.
STag with_next_key(STag stag) { return (stag & ~STag{0xff}) | ((stag + 1) & 0xff); }

/// Posts the binding of a window to `length` bytes from `offset` of the party's memory.
std::error_code bind(Party& party, STag window, size_t offset, uint64_t length, Access access,
                     uint64_t base = 0) {
  return party.qp.post_send({.opcode = WrOpcode::bind_window,
                             .binding = {.stag = window,
                                         .region = party.mr->lkey(),
                                         .address = party.bytes(offset, 0).data(),
                                         .length = length,
                                         .access = access,
                                         .base = base}});
}

std::error_code invalidate(Party& party, STag stag) {
  return party.qp.post_send({.opcode = WrOpcode::local_invalidate, .invalidate_stag = stag});
}

std::error_code register_memory(Party& party, STag stag, std::span<std::byte> memory,
                                Access access = kOpen, uint64_t base = 0) {
  return party.qp.post_send({.opcode = WrOpcode::register_memory,
                             .binding = {.stag = stag,
                                         .address = memory.data(),
                                         .length = memory.size(),
                                         .access = access,
                                         .base = base}});
}

/// A connection whose side b binds windows. It is ready to send.
struct Windowed : Pair {
  Windowed() : Pair({.access = kOpen}, {.access = kBindable}), window(b.pd) {}
  MemoryWindow window;
};

/// A Write of `length` bytes that must be placed; told by a Send.
void check_written(Pair& pair, size_t length, RemoteMemory remote) {
  REQUIRE_FALSE(pair.b.post_recv(5, 0, 0));
  REQUIRE_FALSE(pair.a.write(0, length, remote));
  REQUIRE_FALSE(pair.a.send(0, 0));
  REQUIRE(next_good(pair.b.recv_cq).wr_id == 5);
  take(pair.a.send_cq, 2);
}

/// A Write that must be refused, which ends the connection.
void check_refused(Pair& pair, size_t length, RemoteMemory remote) {
  REQUIRE_FALSE(pair.a.write(0, length, remote));
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(pair.b.qp.wait_disconnected(kPatience));
}

}  // namespace

TEST_CASE("A bound window lets the peer write its part of the region") {
  if (!needs(Capability::window_bases)) return;
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 1000, 100, Access::remote_write, 0x10));
  CHECK(next_good(scene.b.send_cq).opcode == WcOpcode::bind_window);
  scene.a.fill(0, 100, 1);
  check_written(scene, 100, {scene.window.stag(), 0x10});
  CHECK(scene.b.holds(1000, 100, 1));
}

TEST_CASE("A window tells what it is bound to") {
  if (!needs(Capability::window_bases)) return;
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  CHECK_FALSE(scene.window.query().valid);
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_read, 0x20));
  next_good(scene.b.send_cq);
  const SteeringTagAttributes attributes = scene.window.query();
  CHECK(attributes.valid);
  CHECK(attributes.stag == scene.window.stag());
  CHECK(attributes.base == 0x20);
  CHECK(attributes.length == 100);
  CHECK(attributes.access == Access::remote_read);
}

TEST_CASE("A window ends where it was bound to end") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 1000, 100, Access::remote_write));
  next_good(scene.b.send_cq);
  scene.a.fill(0, 101, 1);
  check_refused(scene, 101, {scene.window.stag(), 0});
  CHECK(scene.b.is_zero(0, 4096));
}

TEST_CASE("A window is bound to memory by its address, whatever the base of the region") {
  if (!needs(Capability::memory_windows)) return;
  if (!needs(Capability::chosen_bases)) return;
  Windowed scene;
  const Pages pages(4096);
  const MemoryRegion region(scene.b.pd, pages.bytes(), kBindable, 0x5000);
  REQUIRE_FALSE(scene.b.qp.post_send({.opcode = WrOpcode::bind_window,
                                      .binding = {.stag = scene.window.stag(),
                                                  .region = region.lkey(),
                                                  .address = pages.bytes().data() + 300,
                                                  .length = 100,
                                                  .access = Access::remote_write}}));
  next_good(scene.b.send_cq);
  scene.a.fill(0, 100, 6);
  check_written(scene, 100, {scene.window.stag(), 0});
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(300, 100), 6));
}

TEST_CASE("A window gives no rights but those it was bound with") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_read));
  next_good(scene.b.send_cq);
  REQUIRE_FALSE(scene.a.read(0, 100, {scene.window.stag(), 0}));
  next_good(scene.a.send_cq);
  scene.a.fill(0, 10, 1);
  check_refused(scene, 10, {scene.window.stag(), 0});
  CHECK(scene.b.is_zero(0, 100));
}

TEST_CASE("A window that was not bound names nothing") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  check_refused(scene, 1, {scene.window.stag(), 0});
}

TEST_CASE("A window that was invalidated is bound again under a new key") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  const STag first = scene.window.stag();
  const STag second = with_next_key(first);
  REQUIRE_FALSE(bind(scene.b, first, 0, 100, Access::remote_write));
  REQUIRE_FALSE(invalidate(scene.b, first));
  REQUIRE_FALSE(bind(scene.b, second, 200, 100, Access::remote_write));
  for (int i = 0; i < 3; ++i) next_good(scene.b.send_cq);
  scene.a.fill(0, 100, 2);
  check_written(scene, 100, {second, 0});
  CHECK(scene.b.holds(200, 100, 2));
  check_refused(scene, 1, {first, 0});
}

TEST_CASE("A Send with Invalidate takes a window back") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  const STag stag = scene.window.stag();
  REQUIRE_FALSE(bind(scene.b, stag, 0, 100, Access::remote_write));
  next_good(scene.b.send_cq);
  REQUIRE_FALSE(scene.b.post_recv(1, 0, 10));
  REQUIRE_FALSE(
      scene.a.qp.post_send({.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = stag}));
  const WorkCompletion received = next_good(scene.b.recv_cq);
  check_told(received, stag);
  CHECK_FALSE(scene.window.query().valid);
  check_refused(scene, 1, {stag, 0});
}

/// The binding of a window that is in force, and whose completion was not polled.
struct BoundUnpolled : Windowed {
  BoundUnpolled() {
    REQUIRE_FALSE(a.post_recv(1, 0, 10));
    REQUIRE_FALSE(b.post_recv(1, 0, 10));
    REQUIRE_FALSE(bind(b, window.stag(), 0, 100, Access::remote_write));
    REQUIRE_FALSE(b.send(0, 0));
    next_good(a.recv_cq);  // comes after the binding
  }
  void check_binding_completes() {
    CHECK(next_good(b.send_cq).opcode == WcOpcode::bind_window);
    CHECK(next_good(b.send_cq).opcode == WcOpcode::send);
  }
};

TEST_CASE("A window is invalid that the peer took back before its binding was polled") {
  if (!needs(Capability::memory_windows)) return;
  BoundUnpolled scene;
  REQUIRE_FALSE(scene.a.qp.post_send(
      {.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = scene.window.stag()}));
  check_told(next_good(scene.b.recv_cq), scene.window.stag());
  scene.check_binding_completes();
  CHECK_FALSE(scene.window.query().valid);
}

TEST_CASE("A window is invalid whose region was destroyed before its binding was polled") {
  if (!needs(Capability::memory_windows)) return;
  BoundUnpolled scene;
  scene.b.mr.reset();
  scene.check_binding_completes();
  CHECK_FALSE(scene.window.query().valid);
  check_refused(scene, 1, {scene.window.stag(), 0});
}

TEST_CASE("The newest binding of a window counts, whichever completion is polled last") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  const STag first = scene.window.stag();
  const STag second = with_next_key(first);
  Party far(scene.device_a);
  CompletionQueue cq(scene.device_b, 16);
  QueuePair qp(scene.b.pd, {.send_cq = cq, .recv_cq = cq});
  join(far.qp, qp, scene.device_b);
  REQUIRE_FALSE(scene.a.post_recv(1, 0, 10));
  REQUIRE_FALSE(bind(scene.b, first, 0, 100, Access::remote_write));
  REQUIRE_FALSE(invalidate(scene.b, first));
  REQUIRE_FALSE(scene.b.send(0, 0));
  next_good(scene.a.recv_cq);
  REQUIRE_FALSE(qp.post_send({.opcode = WrOpcode::bind_window,
                              .binding = {.stag = second,
                                          .region = scene.b.mr->lkey(),
                                          .address = scene.b.bytes(200, 0).data(),
                                          .length = 50,
                                          .access = Access::remote_write}}));
  next_good(cq);
  take(scene.b.send_cq, 3);
  CHECK(scene.window.query().valid);
  CHECK(scene.window.query().stag == second);
  CHECK(scene.window.query().length == 50);
}

TEST_CASE("A region is destroyed when its window was bound to another one, which nobody polled") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  const STag first = scene.window.stag();
  const STag second = with_next_key(first);
  const Pages pages(4096);
  const MemoryRegion other(scene.b.pd, pages.bytes(), kBindable);
  REQUIRE_FALSE(bind(scene.b, first, 0, 100, Access::remote_write));
  next_good(scene.b.send_cq);
  REQUIRE_FALSE(invalidate(scene.b, first));
  REQUIRE_FALSE(scene.b.qp.post_send({.opcode = WrOpcode::bind_window,
                                      .binding = {.stag = second,
                                                  .region = other.lkey(),
                                                  .address = pages.bytes().data(),
                                                  .length = 100,
                                                  .access = Access::remote_write}}));
  REQUIRE_FALSE(scene.a.post_recv(1, 0, 10));
  REQUIRE_FALSE(scene.b.send(0, 0));
  next_good(scene.a.recv_cq);  // comes after the binding
  scene.b.mr.reset();
  check_refused(scene, 1, {first, 0});
}

TEST_CASE("A binding beyond its region fails with window_bind_error and ends the connection") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  const size_t size = scene.b.pages.bytes().size();
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 1, size, Access::remote_read));
  CHECK(next(scene.b.send_cq).status == WcStatus::window_bind_error);
  CHECK(scene.b.qp.wait_disconnected(kPatience));
}

TEST_CASE("A region without window_bind takes no windows") {
  if (!needs(Capability::memory_windows)) return;
  Pair pair({}, {.access = kOpen});
  const MemoryWindow window(pair.b.pd);
  REQUIRE_FALSE(bind(pair.b, window.stag(), 0, 10, Access::remote_read));
  CHECK(next(pair.b.send_cq).status == WcStatus::window_bind_error);
}

TEST_CASE("A window is invalid when its region is destroyed") {
  if (!needs(Capability::memory_windows)) return;
  Windowed scene;
  REQUIRE_FALSE(bind(scene.b, scene.window.stag(), 0, 100, Access::remote_write));
  next_good(scene.b.send_cq);
  scene.b.mr.reset();
  CHECK_FALSE(scene.window.query().valid);
  check_refused(scene, 1, {scene.window.stag(), 0});
}

TEST_CASE("A fast registration names memory for the peer and for its owner") {
  if (!needs(Capability::fast_registration)) return;
  Pair pair;
  const FastRegistration fast(pair.b.pd, 4096);
  const Pages pages(4096);
  CHECK_FALSE(fast.query().valid);
  REQUIRE_FALSE(register_memory(pair.b, fast.stag(), pages.bytes(), kOpen, 0x2000));
  CHECK(next_good(pair.b.send_cq).opcode == WcOpcode::register_memory);
  CHECK(fast.query().valid);
  CHECK(fast.query().base == 0x2000);
  CHECK(fast.query().length == 4096);
  pair.a.fill(0, 50, 3);
  check_written(pair, 50, {fast.stag(), 0x2001});
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(1, 50), 3));
  REQUIRE_FALSE(pair.b.qp.post_recv({.sges = Sge{pages.bytes().data() + 100, 50, fast.stag()}}));
  REQUIRE_FALSE(pair.a.send(0, 50));
  next_good(pair.b.recv_cq);
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(100, 50), 3));
}

TEST_CASE("A fast registration that was invalidated names nothing, and can be made again") {
  if (!needs(Capability::fast_registration)) return;
  Pair pair;
  const FastRegistration fast(pair.b.pd, 4096);
  const Pages first(4096);
  const Pages second(4096);
  const STag renewed = with_next_key(fast.stag());
  REQUIRE_FALSE(register_memory(pair.b, fast.stag(), first.bytes()));
  REQUIRE_FALSE(invalidate(pair.b, fast.stag()));
  REQUIRE_FALSE(register_memory(pair.b, renewed, second.bytes()));
  for (int i = 0; i < 3; ++i) next_good(pair.b.send_cq);
  pair.a.fill(0, 50, 4);
  check_written(pair, 50, {renewed, 0});
  CHECK_FALSE(test::first_wrong(second.bytes().first(50), 4));
  check_refused(pair, 1, {fast.stag(), 0});
  CHECK(first.bytes()[0] == std::byte{0});
}

TEST_CASE("A fast registration holds no more than it was made for") {
  if (!needs(Capability::fast_registration)) return;
  Pair pair;
  const FastRegistration fast(pair.b.pd, 4096);
  const Pages pages(8192);
  REQUIRE_FALSE(register_memory(pair.b, fast.stag(), pages.bytes()));
  CHECK(next(pair.b.send_cq).status == WcStatus::window_bind_error);
  CHECK(pair.b.qp.wait_disconnected(kPatience));
}

}  // namespace diwarp::contract
