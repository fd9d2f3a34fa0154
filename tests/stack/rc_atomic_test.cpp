// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "stack/rc_support.h"

/// Atomic operations and immediate data (RFC 7306).
namespace diwarp::test {

namespace {

uint64_t word(const RcParty& party, size_t offset) {
  uint64_t value;
  std::memcpy(&value, party.memory.data() + offset, sizeof value);
  return value;
}

void set_word(RcParty& party, size_t offset, uint64_t value) {
  std::memcpy(party.memory.data() + offset, &value, sizeof value);
}

std::error_code post_atomic(RcParty& party, WrOpcode opcode, RemoteMemory remote,
                            const AtomicOperands& operands, uint64_t wr_id = 0) {
  const Sge sge = party.mr->sge(0, 8);
  return party.qp.post_send(
      {.wr_id = wr_id, .sges = {&sge, 1}, .opcode = opcode, .remote = remote, .atomic = operands});
}

/// Does one operation on `before`. Returns what stands there afterwards.
uint64_t outcome(WrOpcode opcode, uint64_t before, const AtomicOperands& operands) {
  Couple couple({}, {.access = kOpen});
  set_word(couple.b, 64, before);
  REQUIRE_FALSE(post_atomic(couple.a, opcode, couple.b.remote(64), operands));
  couple.world.settle();
  const auto done = drain(couple.a.send_cq);
  REQUIRE(done.size() == 1);
  REQUIRE(done[0].status == WcStatus::success);
  REQUIRE(done[0].byte_count == 8);
  REQUIRE(word(couple.a, 0) == before);
  return word(couple.b, 64);
}

}  // namespace

TEST_CASE("FetchAdd adds, and gives the value before") {
  CHECK(outcome(WrOpcode::fetch_add, 40, {.operand = 2}) == 42);
  CHECK(outcome(WrOpcode::fetch_add, ~uint64_t{0}, {.operand = 3}) == 2);
}

TEST_CASE("FetchAdd with a mask adds fields of their own") {
  // Two fields of 32 bits: the lower one's carry goes nowhere.
  const uint64_t tops = uint64_t{1} << 63 | uint64_t{1} << 31;
  CHECK(outcome(WrOpcode::fetch_add, 0x00000001'ffffffff,
                {.operand = 0x00000001'00000001, .add_mask = tops}) == 0x00000002'00000000);
}

TEST_CASE("CmpSwap swaps where the value is the expected one, and only there") {
  CHECK(outcome(WrOpcode::compare_swap, 7, {.operand = 9, .compare = 7}) == 9);
  CHECK(outcome(WrOpcode::compare_swap, 8, {.operand = 9, .compare = 7}) == 8);
}

TEST_CASE("CmpSwap with masks compares and replaces parts") {
  constexpr AtomicOperands kMasked{
      .operand = 0xffff, .compare = 0x0034, .swap_mask = 0xff00, .compare_mask = 0xff};
  CHECK(outcome(WrOpcode::compare_swap, 0x1234, kMasked) == 0xff34);
  CHECK(outcome(WrOpcode::compare_swap, 0x1235, kMasked) == 0x1235);
}

TEST_CASE("Swap replaces whatever is there") {
  CHECK(outcome(WrOpcode::swap, 5, {.operand = 77}) == 77);
  CHECK(outcome(WrOpcode::swap, 0x55, {.operand = 0x77, .swap_mask = 0x0f}) == 0x57);
}

TEST_CASE("Atomic operations of many connections and of the target's own threads lose nothing") {
  const Device target = Device::open("127.0.0.1");
  RcParty b1(target, {.access = kOpen});
  RcParty b2(target, {.access = kOpen});
  const MemoryRegion shared(b2.pd, std::span(b1.memory), kOpen);
  const Device one = Device::open("127.0.0.1");
  RcParty a1(one);
  RcParty a2(one);
  connect(a1, b1, target);
  connect(a2, b2, target);
  const uint64_t rounds = 500;
  std::thread own([&] {
    std::atomic_ref<uint64_t> counter(*reinterpret_cast<uint64_t*>(b1.memory.data()));
    for (uint64_t i = 0; i < rounds; ++i) counter.fetch_add(1);
  });
  bool posted = true;
  for (uint64_t i = 0; i < rounds; ++i) {
    posted = posted && !post_atomic(a1, WrOpcode::fetch_add, b1.remote(), {.operand = 1});
    posted = posted &&
             !post_atomic(a2, WrOpcode::fetch_add, {shared.rkey(), shared.base()}, {.operand = 1});
    posted = posted && a1.send_cq.wait(kPatience).has_value();
    posted = posted && a2.send_cq.wait(kPatience).has_value();
  }
  own.join();
  REQUIRE(posted);
  CHECK(word(b1, 0) == 3 * rounds);
}

TEST_CASE("An atomic operation after a Read does not change the bytes that the Read sees") {
  Couple couple({}, {.access = kOpen});
  set_word(couple.b, 0, 1);
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 100, 8, couple.b.remote(), 1));
  REQUIRE_FALSE(post_atomic(couple.a, WrOpcode::fetch_add, couple.b.remote(), {.operand = 1}, 2));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 200, 8, couple.b.remote(), 3));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses(3, WcStatus::success));
  CHECK(word(couple.a, 100) == 1);
  CHECK(word(couple.a, 0) == 1);
  CHECK(word(couple.a, 200) == 2);
}

namespace {

void check_atomic_refused(Couple& couple, RemoteMemory remote, WcStatus status,
                          TerminateCode code) {
  const std::vector<std::byte> before = couple.b.memory;
  REQUIRE_FALSE(post_atomic(couple.a, WrOpcode::fetch_add, remote, {.operand = 1}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{status});
  CHECK(couple.b.memory == before);
  const QueuePairAttributes attributes = couple.a.qp.query();
  REQUIRE(attributes.terminate);
  CHECK(to_string(attributes.terminate->code) == to_string(code));
}

}  // namespace

TEST_CASE("An atomic operation without the right is refused") {
  Couple couple({}, {.access = Access::local_write | Access::remote_write | Access::remote_read});
  check_atomic_refused(couple, couple.b.remote(), WcStatus::remote_access_error, {0, 1, 2});
}

TEST_CASE("An atomic operation without the queue pair's right is refused") {
  Couple couple({}, {.access = kOpen});
  couple.b.qp.set_remote_access(Access::remote_write | Access::remote_read);
  check_atomic_refused(couple, couple.b.remote(), WcStatus::remote_access_error, {0, 1, 2});
}

TEST_CASE("An atomic operation beyond the region is refused") {
  Couple couple({}, {.access = kOpen});
  check_atomic_refused(couple, couple.b.remote(couple.b.memory.size() - 7),
                       WcStatus::remote_access_error, {0, 1, 1});
}

TEST_CASE("An atomic operation on an address that is not aligned is refused") {
  Couple couple({}, {.access = kOpen});
  EventQueue events(couple.device_of_a());
  REQUIRE_FALSE(post_atomic(couple.a, WrOpcode::fetch_add, couple.b.remote(4), {.operand = 1}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::remote_operation_error});
  CHECK(word(couple.b, 4) == 0);
}

TEST_CASE("An atomic operation takes one SGE of eight bytes") {
  Couple couple;
  const Sge seven = couple.a.mr->sge(0, 7);
  CHECK(couple.a.qp.post_send({.sges = {&seven, 1}, .opcode = WrOpcode::fetch_add}) ==
        Errc::invalid_argument);
  CHECK(couple.a.qp.post_send({.opcode = WrOpcode::swap}) == Errc::invalid_argument);
}

// --- Immediate data.

TEST_CASE("Immediate data take a receive, write nothing, and keep their place among Sends") {
  Couple couple;
  RcParty& a = couple.a;
  RcParty& b = couple.b;
  b.fill(pattern(300, 1));
  const std::vector<std::byte> before = b.memory;
  b.post_receives(3, 100);
  REQUIRE_FALSE(a.send(0, 0, 1));
  REQUIRE_FALSE(
      a.qp.post_send({.wr_id = 2, .opcode = WrOpcode::immediate, .immediate = 0x0123456789abcdef}));
  REQUIRE_FALSE(a.qp.post_send({.wr_id = 3,
                                .flags = SendFlags::signaled | SendFlags::solicited,
                                .opcode = WrOpcode::immediate,
                                .immediate = 5}));
  couple.world.settle();
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 3);
  CHECK(received[0].opcode == WcOpcode::recv);
  CHECK(received[1].opcode == WcOpcode::recv_immediate);
  CHECK(received[1].wr_id == 1);
  CHECK(received[1].immediate == 0x0123456789abcdef);
  CHECK_FALSE(received[1].solicited);
  CHECK(received[2].immediate == 5);
  CHECK(received[2].solicited);
  CHECK(b.memory == before);
  const auto sent = drain(a.send_cq);
  REQUIRE(sent.size() == 3);
  CHECK(sent[1].opcode == WcOpcode::immediate);
  CHECK(sent[1].byte_count == 8);
}

TEST_CASE("Immediate data after a Write tell that it is there") {
  Couple couple({}, {.access = kOpen});
  couple.b.post_receives(1, 0);
  couple.a.fill(pattern(5000, 6));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 5000, couple.b.remote()));
  REQUIRE_FALSE(couple.a.qp.post_send({.opcode = WrOpcode::immediate, .immediate = 1}));
  REQUIRE(step_until_completed(couple.world, couple.b.recv_cq));
  CHECK(same(couple.b.bytes(0, 5000), pattern(5000, 6)));
}

TEST_CASE("Immediate data have no SGEs") {
  Couple couple;
  CHECK(couple.a.post(WrOpcode::immediate, 0, 8, {}) == Errc::invalid_argument);
}

}  // namespace diwarp::test
