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
                                       .flags = SendFlags::immediate,
                                       .destination = to.address(),
                                       .immediate = i}));
    } else {
      REQUIRE_FALSE(from.qp.post_write_record({.local = {from.mr.sge(0, 10)},
                                               .destination = to.address(),
                                               .remote = {target.rkey(), target.base()},
                                               .flags = SendFlags::none,
                                               .immediate = i}));
    }
  }
}

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
