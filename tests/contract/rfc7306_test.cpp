// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "contract/pair.h"

/// Atomic operations and immediate data (RFC 7306).
namespace diwarp::contract {

namespace {

constexpr Access kAtomic = kOpen | Access::remote_atomic;

uint64_t word(const Party& party, size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, party.bytes(offset, sizeof value).data(), sizeof value);
  return value;
}

void set_word(Party& party, size_t offset, uint64_t value) {
  std::memcpy(party.bytes(offset, sizeof value).data(), &value, sizeof value);
}

SendWorkRequest atomic(const Party& party, WrOpcode opcode, RemoteMemory remote,
                       const AtomicOperands& operands) {
  return {.wr_id = 4,
          .sges = party.mr->sge(0, 8),
          .opcode = opcode,
          .remote = remote,
          .atomic = operands};
}

/// Does one operation on `before`. Returns what stands there afterwards.
uint64_t outcome(WrOpcode opcode, uint64_t before, const AtomicOperands& operands) {
  Pair pair({}, {.access = kAtomic});
  set_word(pair.b, 64, before);
  REQUIRE_FALSE(pair.a.qp.post_send(atomic(pair.a, opcode, pair.b.remote(64), operands)));
  CHECK(next_good(pair.a.send_cq).wr_id == 4);
  CHECK(word(pair.a, 0) == before);
  return word(pair.b, 64);
}

SendWorkRequest immediate(uint64_t data, SendFlags flags = SendFlags::signaled) {
  return {.wr_id = data, .flags = flags, .opcode = WrOpcode::immediate, .immediate = data};
}

}  // namespace

TEST_CASE("fetch_add adds to the peer's word, and gives the value before") {
  if (!needs(Capability::atomics)) return;
  CHECK(outcome(WrOpcode::fetch_add, 40, {.operand = 2}) == 42);
  CHECK(outcome(WrOpcode::fetch_add, ~uint64_t{0}, {.operand = 3}) == 2);
}

TEST_CASE("fetch_add with a mask adds fields of their own") {
  if (!needs(Capability::masked_atomics)) return;
  if (!needs(Capability::atomics)) return;
  const uint64_t tops = uint64_t{1} << 63 | uint64_t{1} << 31;
  CHECK(outcome(WrOpcode::fetch_add, 0x00000001'ffffffff,
                {.operand = 0x00000001'00000001, .add_mask = tops}) == 0x00000002'00000000);
}

TEST_CASE("compare_swap swaps where the word is the expected one, and only there") {
  if (!needs(Capability::atomics)) return;
  CHECK(outcome(WrOpcode::compare_swap, 7, {.operand = 9, .compare = 7}) == 9);
  CHECK(outcome(WrOpcode::compare_swap, 8, {.operand = 9, .compare = 7}) == 8);
}

TEST_CASE("compare_swap with masks compares and replaces parts of the word") {
  if (!needs(Capability::masked_atomics)) return;
  if (!needs(Capability::atomics)) return;
  const AtomicOperands masked{
      .operand = 0xffff, .compare = 0x0034, .swap_mask = 0xff00, .compare_mask = 0xff};
  CHECK(outcome(WrOpcode::compare_swap, 0x1234, masked) == 0xff34);
  CHECK(outcome(WrOpcode::compare_swap, 0x1235, masked) == 0x1235);
}

TEST_CASE("swap replaces the word, or the bits of its mask") {
  if (!needs(Capability::masked_atomics)) return;
  if (!needs(Capability::atomics)) return;
  CHECK(outcome(WrOpcode::swap, 5, {.operand = 77}) == 77);
  CHECK(outcome(WrOpcode::swap, 0x55, {.operand = 0x77, .swap_mask = 0x0f}) == 0x57);
}

TEST_CASE("The completion of an atomic operation tells which it was") {
  if (!needs(Capability::masked_atomics)) return;
  if (!needs(Capability::atomics)) return;
  Pair pair({}, {.access = kAtomic});
  REQUIRE_FALSE(pair.a.qp.post_send(atomic(pair.a, WrOpcode::fetch_add, pair.b.remote(), {})));
  CHECK(next_good(pair.a.send_cq).opcode == WcOpcode::fetch_add);
  REQUIRE_FALSE(pair.a.qp.post_send(atomic(pair.a, WrOpcode::compare_swap, pair.b.remote(), {})));
  CHECK(next_good(pair.a.send_cq).opcode == WcOpcode::compare_swap);
  REQUIRE_FALSE(pair.a.qp.post_send(atomic(pair.a, WrOpcode::swap, pair.b.remote(), {})));
  CHECK(next_good(pair.a.send_cq).opcode == WcOpcode::swap);
}

TEST_CASE("Atomic operations of two connections on one word lose nothing") {
  if (!needs(Capability::atomics)) return;
  constexpr uint64_t kRounds = 200;
  Pair pair({}, {.access = kAtomic});
  Party c(pair.device_a);
  Party d(pair.device_b);
  join(c.qp, d.qp, pair.device_b);
  const MemoryRegion shared(d.pd, pair.b.pages.bytes(), kAtomic);
  for (uint64_t i = 0; i < kRounds; ++i) {
    REQUIRE_FALSE(
        pair.a.qp.post_send(atomic(pair.a, WrOpcode::fetch_add, pair.b.remote(), {.operand = 1})));
    REQUIRE_FALSE(c.qp.post_send(
        atomic(c, WrOpcode::fetch_add, {shared.rkey(), shared.base()}, {.operand = 1})));
    next_good(pair.a.send_cq);
    next_good(c.send_cq);
  }
  CHECK(word(pair.b, 0) == 2 * kRounds);
}

TEST_CASE("An atomic operation without one SGE of 8 bytes is refused with invalid_argument") {
  if (!needs(Capability::atomics)) return;
  Pair pair({}, {.access = kAtomic});
  SendWorkRequest request = atomic(pair.a, WrOpcode::fetch_add, pair.b.remote(), {});
  request.sges = pair.a.mr->sge(0, 7);
  CHECK(pair.a.qp.post_send(request) == Errc::invalid_argument);
  request.sges = {};
  CHECK(pair.a.qp.post_send(request) == Errc::invalid_argument);
}

TEST_CASE("An atomic operation without the right fails, and changes nothing") {
  if (!needs(Capability::atomics)) return;
  Pair pair({}, {.access = kOpen});
  set_word(pair.b, 0, 5);
  REQUIRE_FALSE(
      pair.a.qp.post_send(atomic(pair.a, WrOpcode::fetch_add, pair.b.remote(), {.operand = 1})));
  const WorkCompletion failed = next(pair.a.send_cq);
  CHECK(failed.status != WcStatus::success);
  CHECK(failed.opcode == WcOpcode::fetch_add);
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(word(pair.b, 0) == 5);
}

TEST_CASE("An atomic operation on a word that is not aligned fails") {
  if (!needs(Capability::atomics)) return;
  Pair pair({}, {.access = kAtomic});
  REQUIRE_FALSE(
      pair.a.qp.post_send(atomic(pair.a, WrOpcode::fetch_add, pair.b.remote(4), {.operand = 1})));
  CHECK(next(pair.a.send_cq).status != WcStatus::success);
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(pair.b.is_zero(0, 16));
}

// --- Immediate data.

TEST_CASE("Immediate data take a receive, write nothing into it, and tell their 8 bytes") {
  if (!needs(Capability::long_immediates)) return;
  if (!needs(Capability::immediate_data)) return;
  Pair pair;
  pair.b.fill(0, 300, 1);
  pair.b.post_receives(1, 100);
  REQUIRE_FALSE(pair.a.qp.post_send(immediate(0x0123456789abcdef)));
  const WorkCompletion received = next_good(pair.b.recv_cq);
  CHECK(received.opcode == WcOpcode::recv_immediate);
  CHECK(received.wr_id == 0);
  CHECK(received.immediate == 0x0123456789abcdef);
  CHECK(pair.b.holds(0, 300, 1));
  CHECK(next_good(pair.a.send_cq).opcode == WcOpcode::immediate);
}

TEST_CASE("Immediate data keep their place among Sends") {
  if (!needs(Capability::immediate_data)) return;
  Pair pair;
  pair.b.post_receives(3, 100);
  REQUIRE_FALSE(pair.a.send(0, 5));
  REQUIRE_FALSE(pair.a.qp.post_send(immediate(7)));
  REQUIRE_FALSE(pair.a.send(0, 6));
  CHECK(next_good(pair.b.recv_cq).byte_count == 5);
  CHECK(next_good(pair.b.recv_cq).immediate == 7);
  CHECK(next_good(pair.b.recv_cq).byte_count == 6);
}

TEST_CASE("Immediate data after a Write tell that the Write is in place") {
  if (!needs(Capability::immediate_data)) return;
  Pair pair({}, {.access = kOpen});
  for (uint64_t round = 0; round < 50; ++round) {
    REQUIRE_FALSE(pair.b.qp.post_recv({}));
    pair.a.fill(0, 5000, round);
    REQUIRE_FALSE(pair.a.write(0, 5000, pair.b.remote()));
    REQUIRE_FALSE(pair.a.qp.post_send(immediate(round)));
    REQUIRE(next_good(pair.b.recv_cq).immediate == round);
    REQUIRE(pair.b.holds(0, 5000, round));
    take(pair.a.send_cq, 2);
  }
}

TEST_CASE("Immediate data may be solicited") {
  if (!needs(Capability::immediate_data)) return;
  Pair pair;
  pair.b.post_receives(2, 0);
  REQUIRE_FALSE(pair.a.qp.post_send(immediate(1)));
  REQUIRE_FALSE(pair.a.qp.post_send(immediate(2, SendFlags::signaled | SendFlags::solicited)));
  CHECK_FALSE(next_good(pair.b.recv_cq).solicited);
  const WorkCompletion solicited = next_good(pair.b.recv_cq);
  if (needs(Capability::solicited_events)) CHECK(solicited.solicited);
}

TEST_CASE("Immediate data with SGEs, or with a Send, are refused with invalid_argument") {
  if (!needs(Capability::immediate_data)) return;
  Pair pair;
  SendWorkRequest request = immediate(1);
  request.sges = pair.a.mr->sge(0, 8);
  CHECK(pair.a.qp.post_send(request) == Errc::invalid_argument);
  request.opcode = WrOpcode::send;
  CHECK(pair.a.qp.post_send(request) == Errc::invalid_argument);
  check_message(pair.a, pair.b);
}

}  // namespace diwarp::contract
