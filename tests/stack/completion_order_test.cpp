// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint64_t kMessages = 60;

/// A completion queue that is smaller than what comes, so that completions wait.
PartyOptions small_queue(QpType type) {
  return {.receive_entries = 4, .capacity = {.max_recv_wr = 128}, .type = type};
}

/// Two Sends, one Write-Record, and so on; the immediate counts.
void post_mixed(Party& from, Party& to, const MemoryRegion& target) {
  for (uint64_t i = 0; i < kMessages; ++i) {
    if (i % 3 != 2) {
      const Sge sge = from.mr.sge(0, 10);
      REQUIRE_FALSE(from.qp.post_send({.sges = {&sge, 1},
                                       .flags = SendFlags::none,
                                       .destination = to.address(),
                                       .immediate = i}));
    } else {
      REQUIRE_FALSE(from.qp.post_write_record({.sges = {from.mr.sge(0, 10)},
                                               .flags = SendFlags::none,
                                               .destination = to.address(),
                                               .remote = {target.rkey(), target.base()},
                                               .immediate = i}));
    }
  }
}

ReliableOptions order_of(CompletionOrder order) {
  return {.peer_timeout = 10s, .completion_order = order};
}

/// Two queue pairs, and an address that never answers.
struct SilentScene : RdScene {
  explicit SilentScene(CompletionOrder order)
      : RdScene({}, {.capacity = {.max_send_wr = 8}, .reliable = order_of(order)}), silent(world) {}

  void exchange(uint64_t wr_id) {
    REQUIRE_FALSE(b.post_recv(wr_id, 0, 64));
    REQUIRE_FALSE(a.send(b.address(), 0, 64, wr_id));
  }
  std::vector<uint64_t> sent(size_t count, Duration limit) {
    std::vector<uint64_t> wr_ids;
    for (const WorkCompletion& one : collect(a.send_cq, count, limit)) {
      wr_ids.push_back(one.wr_id);
      CHECK(one.status == expected);
    }
    return wr_ids;
  }

  Stranger silent;
  WcStatus expected = WcStatus::success;
};

using Ids = std::vector<uint64_t>;

}  // namespace

TEST_CASE(
    "completions of Sends and Write-Records come in the order of arrival, also when they wait") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    INFO(to_string(type));
    World world;
    Device& device = world.add_device();
    Party a(device, small_queue(type)), b(device, small_queue(type));
    const MemoryRegion target(b.pd, std::span(b.memory), kAllAccess);
    for (uint64_t i = 0; i < kMessages; ++i) REQUIRE_FALSE(b.post_recv(i, 0, 100));
    post_mixed(a, b, target);
    uint64_t next = 0;
    for (int round = 0; round < 1000 && next < kMessages; ++round) {
      world.settle();
      world.clock.advance(1ms);
      for (const WorkCompletion& one : drain(b.recv_cq)) {
        CHECK(one.immediate == next);
        CHECK((one.opcode == WcOpcode::recv_write_record) == (next % 3 == 2));
        ++next;
      }
    }
    CHECK(next == kMessages);
  }
}

TEST_CASE("rd: in order of posting a silent peer holds up the completions of all") {
  SilentScene scene(CompletionOrder::posting);
  REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, 1));
  scene.exchange(2);
  REQUIRE(scene.collect(scene.b.recv_cq, 1, 1s).size() == 1);
  CHECK(scene.sent(1, 5s).empty());
  const auto both = scene.collect(scene.a.send_cq, 2, 10s);
  REQUIRE(both.size() == 2);
  CHECK(both[0].wr_id == 1);
  CHECK(both[0].status == WcStatus::retry_exceeded);
  CHECK(both[1].wr_id == 2);
}

TEST_CASE("rd: in order per peer a silent peer holds up only its own completions") {
  SilentScene scene(CompletionOrder::peer);
  for (const uint64_t id : {101U, 102U})
    REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, id));
  // Many times as many as the send queue has places.
  for (uint64_t id = 0; id < 50; ++id) {
    scene.exchange(id);
    REQUIRE(scene.sent(1, 1s) == Ids{id});
    CHECK(drain(scene.b.recv_cq).size() == 1);
    CHECK(scene.a.qp.query().posted_sends == 2);
  }
  scene.expected = WcStatus::retry_exceeded;
  CHECK(scene.sent(2, 20s) == Ids{101U, 102U});
  CHECK(scene.a.qp.query().posted_sends == 0);
}

TEST_CASE("rd: in order per peer a silent peer's own work takes the places of the send queue") {
  SilentScene scene(CompletionOrder::peer);
  for (uint64_t id = 0; id < 8; ++id)
    REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, id));
  CHECK(scene.a.send(scene.b.address(), 0, 64, 9) == Errc::queue_full);
  scene.expected = WcStatus::retry_exceeded;
  CHECK(scene.sent(8, 20s) == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK_FALSE(scene.a.send(scene.b.address(), 0, 64, 9));
}

TEST_CASE("rd: in order per peer a Send is reported after the Read that was posted before it") {
  for (const uint64_t seed : {1U, 2U, 3U}) {
    RdScene scene({.seed = seed, .drop = 0.1},
                  {.memory = 1 << 20, .reliable = order_of(CompletionOrder::peer)});
    const MemoryRegion source(scene.b.pd, std::span(scene.b.memory), kAllAccess);
    scene.b.post_receives(8, 64);
    for (uint64_t i = 0; i < 8; ++i) {
      REQUIRE_FALSE(scene.a.qp.post_read({.wr_id = 2 * i,
                                          .sges = {scene.a.mr.sge(0, 30000)},
                                          .destination = scene.b.address(),
                                          .remote = {source.rkey(), source.base()}}));
      REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 2 * i + 1));
    }
    const auto all = scene.collect(scene.a.send_cq, 16);
    REQUIRE(all.size() == 16);
    for (uint64_t i = 0; i < 16; ++i) {
      CHECK(all[i].wr_id == i);
      CHECK(all[i].status == WcStatus::success);
    }
  }
}

TEST_CASE("rd: in order per peer what is not signaled is told by a later one to the same peer") {
  SilentScene scene(CompletionOrder::peer);
  REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, 1, SendFlags::none));
  REQUIRE_FALSE(scene.b.post_recv(0, 0, 64));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 2, SendFlags::none));
  scene.exchange(3);
  CHECK(scene.sent(1, 1s) == Ids{3});
  CHECK(scene.a.qp.query().posted_sends == 1);
  scene.expected = WcStatus::retry_exceeded;  // failures are always told
  CHECK(scene.sent(1, 20s) == Ids{1});
}

TEST_CASE("rd: in order per peer a local invalidate waits for all, a bind for none") {
  SilentScene scene(CompletionOrder::peer);
  MemoryRegion region(scene.a.pd, std::span(scene.a.memory), kAllAccess | Access::window_bind);
  MemoryWindow window(scene.a.pd);
  REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, 1));
  REQUIRE_FALSE(scene.a.qp.post_send({.wr_id = 2,
                                      .opcode = WrOpcode::bind_window,
                                      .binding = {.stag = window.stag(),
                                                  .region = region.lkey(),
                                                  .address = scene.a.memory.data(),
                                                  .length = 64,
                                                  .access = Access::remote_read}}));
  REQUIRE_FALSE(scene.a.qp.post_send(
      {.wr_id = 3, .opcode = WrOpcode::local_invalidate, .invalidate_stag = window.stag()}));
  scene.exchange(4);
  CHECK(scene.sent(2, 5s) == Ids{2});
  const auto rest = scene.collect(scene.a.send_cq, 3, 20s);
  REQUIRE(rest.size() == 3);
  CHECK(rest[0].wr_id == 1);
  CHECK(rest[1].wr_id == 3);
  CHECK(rest[2].wr_id == 4);
}

TEST_CASE(
    "rd: in order per peer the error state flushes everything once, and a reset begins anew") {
  SilentScene scene(CompletionOrder::peer);
  scene.exchange(0);
  REQUIRE(scene.sent(1, 1s) == Ids{0});
  for (const uint64_t id : {1U, 3U}) {
    REQUIRE_FALSE(scene.a.send(scene.silent.address(), 0, 64, id));
    scene.exchange(id + 1);
  }
  scene.expected = WcStatus::success;
  REQUIRE(scene.sent(2, 1s) == Ids{2, 4});
  scene.a.qp.modify(QpState::error);
  scene.expected = WcStatus::wr_flush_error;
  CHECK(scene.sent(3, 1s) == Ids{1, 3});
  for (const QpState state : {QpState::reset, QpState::init, QpState::rts})
    scene.a.qp.modify(state);
  scene.expected = WcStatus::success;
  for (uint64_t id = 10; id < 30; ++id) {
    scene.exchange(id);
    REQUIRE(scene.sent(1, 1s) == Ids{id});
  }
}
