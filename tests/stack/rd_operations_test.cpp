// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

struct Memories : RdScene {
  explicit Memories(const Trouble& trouble = {}, const PartyOptions& options = {.memory = 2 << 20})
      : RdScene(trouble, options), target(b.pd, std::span(b.memory), kAllAccess) {
    b.fill(pattern(b.memory.size(), 11));
  }
  std::error_code read(size_t offset, size_t length, uint64_t wr_id, STag stag) {
    return a.qp.post_read({.wr_id = wr_id,
                           .sges = {a.mr.sge(offset, length)},
                           .destination = b.address(),
                           .remote = {stag, target.base() + offset}});
  }
  std::error_code read(size_t offset, size_t length, uint64_t wr_id = 0) {
    return read(offset, length, wr_id, target.rkey());
  }
  std::error_code write(size_t offset, size_t length, uint64_t wr_id = 0, uint64_t beyond = 0) {
    return a.qp.post_write_record({.wr_id = wr_id,
                                   .sges = {a.mr.sge(offset, length)},
                                   .destination = b.address(),
                                   .remote = {target.rkey(), target.base() + offset + beyond}});
  }

  MemoryRegion target;
};

}  // namespace

TEST_CASE("rd: Write-Records arrive complete, in order and once, whatever is lost") {
  for (const double drop : {0.0, 0.05, 0.2}) {
    INFO("drop " << drop);
    Memories scene({.seed = 6, .drop = drop, .reorder = drop, .duplicate = drop});
    scene.a.fill(pattern(2 << 20, 4));
    const std::vector<size_t> lengths{0, 1, 1000, 1406, 1407, 100000, 1 << 20, 5};
    size_t offset = 0;
    for (size_t i = 0; i < lengths.size(); offset += lengths[i++])
      REQUIRE_FALSE(scene.write(offset, lengths[i], i));
    const auto records = scene.collect(scene.b.recv_cq, lengths.size());
    REQUIRE(records.size() == lengths.size());
    offset = 0;
    for (size_t i = 0; i < lengths.size(); offset += lengths[i++]) {
      CHECK(records[i].opcode == WcOpcode::recv_write_record);
      CHECK(records[i].byte_count == lengths[i]);
      CHECK(records[i].tagged_offset == scene.target.base() + offset);
      CHECK(records[i].validity.complete());
      CHECK(records[i].source == scene.a.address());
      CHECK(same(scene.b.bytes(offset, lengths[i]), scene.a.bytes(offset, lengths[i])));
    }
    const auto sent = scene.collect(scene.a.send_cq, lengths.size());
    REQUIRE(sent.size() == lengths.size());
    for (const WorkCompletion& one : sent) CHECK(one.status == WcStatus::success);
    CHECK(scene.collect(scene.b.recv_cq, 1, 3s).empty());
  }
}

TEST_CASE("rd: Reads bring every byte, whatever is lost") {
  for (const double drop : {0.0, 0.05, 0.2}) {
    INFO("drop " << drop);
    Memories scene({.seed = 16, .drop = drop, .reorder = drop, .duplicate = drop});
    const std::vector<size_t> lengths{0, 1, 1422, 1423, 256 << 10, (256 << 10) + 1, 1 << 20, 7};
    size_t offset = 0;
    for (size_t i = 0; i < lengths.size(); offset += lengths[i++])
      REQUIRE_FALSE(scene.read(offset, lengths[i], i));
    const auto done = scene.collect(scene.a.send_cq, lengths.size());
    REQUIRE(done.size() == lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      CHECK(done[i].wr_id == i);
      CHECK(done[i].status == WcStatus::success);
      CHECK(done[i].opcode == WcOpcode::rdma_read);
      CHECK(done[i].byte_count == lengths[i]);
      CHECK(done[i].validity.complete());
    }
    CHECK(same(scene.a.bytes(0, offset), scene.b.bytes(0, offset)));
    // Requests of at most 256 KiB each; the last is served once its response is acknowledged.
    CHECK(scene.run([&] { return scene.b_device->counter("reads_served") == 12; }, 30s));
  }
}

TEST_CASE("rd: many Reads, in both directions, with Sends between them") {
  Memories scene({.seed = 5, .drop = 0.03});
  MemoryRegion back(scene.a.pd, std::span(scene.a.memory), kAllAccess);
  scene.b.post_receives(100, 100);
  for (uint64_t i = 0; i < 60; ++i) {
    REQUIRE_FALSE(scene.read(i * 10000, 5000, i));
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 100, 100 + i));
    REQUIRE_FALSE(scene.b.qp.post_read({.wr_id = i,
                                        .sges = {scene.b.mr.sge(1 << 20, 3000)},
                                        .destination = scene.a.address(),
                                        .remote = {back.rkey(), back.base()}}));
  }
  CHECK(scene.collect(scene.a.send_cq, 120).size() == 120);
  CHECK(scene.collect(scene.b.send_cq, 60).size() == 60);
  CHECK(scene.collect(scene.b.recv_cq, 60).size() == 60);
}

TEST_CASE(
    "rd: a request to memory that it may not write or read fails alone, and later ones are done") {
  Memories scene({.seed = 7, .drop = 0.05});
  MemoryRegion closed(scene.b.pd, std::span(scene.b.memory), Access::local_write);
  scene.b.post_receives(2, 64);
  REQUIRE_FALSE(scene.write(0, 100, 0));
  REQUIRE_FALSE(scene.write(0, 100000, 1, 3 << 20));  // beyond the region
  REQUIRE_FALSE(scene.read(0, 100, 2, closed.rkey()));
  REQUIRE_FALSE(scene.read(0, 700000, 3, 0x12345600));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 4));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 5000, 5));  // longer than the receive
  REQUIRE_FALSE(scene.write(0, 100, 6));
  REQUIRE_FALSE(scene.read(200, 100, 7));
  const auto done = scene.collect(scene.a.send_cq, 8);
  REQUIRE(done.size() == 8);
  const std::vector<WcStatus> expected{WcStatus::success,
                                       WcStatus::remote_access_error,
                                       WcStatus::remote_access_error,
                                       WcStatus::remote_access_error,
                                       WcStatus::success,
                                       WcStatus::remote_operation_error,
                                       WcStatus::success,
                                       WcStatus::success};
  for (size_t i = 0; i < done.size(); ++i) {
    INFO(i);
    CHECK(done[i].wr_id == i);
    CHECK(done[i].status == expected[i]);
  }
  CHECK(scene.a.qp.state() == QpState::rts);
  CHECK(scene.b.qp.state() == QpState::rts);
  // The target's application is told, and the receive that was too small is the next one again.
  size_t told = 0;
  while (scene.b.qp.poll_error()) ++told;
  CHECK(told >= 4);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 10, 8));
  const auto received = scene.collect(scene.b.recv_cq, 4);
  REQUIRE(received.size() == 4);
  CHECK(received[3].wr_id == 1);
}

TEST_CASE("rd: a region that goes while it is read fails the Read, not the queue pair") {
  Memories scene;
  auto region = std::make_unique<MemoryRegion>(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  REQUIRE_FALSE(scene.a.qp.post_read({.wr_id = 1,
                                      .sges = {scene.a.mr.sge(0, 2 << 20)},
                                      .destination = scene.b.address(),
                                      .remote = {region->rkey(), region->base()}}));
  REQUIRE_FALSE(scene.read(0, 50, 2));
  for (int i = 0; i < 12; ++i) {  // some of it arrives
    scene.a_device->progress();
    scene.b_device->progress();
  }
  region.reset();
  const auto done = scene.collect(scene.a.send_cq, 2);
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == WcStatus::remote_access_error);
  CHECK(done[1].status == WcStatus::success);
  CHECK(scene.a.qp.state() == QpState::rts);
}

TEST_CASE("rd: memory that the sender takes away is an error of its own, and ends all its work") {
  RdScene scene({}, {.reliable = {.receive_window = 4}});
  auto region = std::make_unique<MemoryRegion>(scene.a.pd, std::span(scene.a.memory));
  REQUIRE_FALSE(scene.a.qp.post_send(
      {.wr_id = 1, .sges = region->sge(0, 60000), .destination = scene.b.address()}));
  scene.world.settle();  // no receive is posted: it is under way
  region.reset();
  scene.b.post_receives(1, 60000);
  scene.run([&] { return scene.a.qp.state() == QpState::error; }, 30s);
  CHECK(scene.a.qp.state() == QpState::error);
  const auto done = scene.collect(scene.a.send_cq, 1, 1s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::local_protection_error);
}

TEST_CASE("rd: error_scope queue_pair makes a peer's refusal everybody's, and reset begins anew") {
  RdScene scene({}, {.reliable = {.error_scope = ErrorScope::queue_pair}});
  scene.b.post_receives(1, 10);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 5, 2));
  const auto done = scene.collect(scene.a.send_cq, 2, 5s);
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == WcStatus::remote_operation_error);
  CHECK(done[1].status == WcStatus::wr_flush_error);
  CHECK(scene.a.qp.state() == QpState::error);
  CHECK_FALSE(scene.a.send(scene.b.address(), 0, 5, 3));
  const auto late = scene.collect(scene.a.send_cq, 1, 1s);
  REQUIRE(late.size() == 1);
  CHECK(late[0].status == WcStatus::wr_flush_error);
  scene.a.qp.modify(QpState::reset);
  scene.a.qp.modify(QpState::init);
  scene.a.qp.modify(QpState::rts);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 5, 4));
  const auto again = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(again.size() == 1);
  CHECK(again[0].status == WcStatus::success);
  CHECK(scene.collect(scene.b.recv_cq, 1, 1s).size() == 1);
}
