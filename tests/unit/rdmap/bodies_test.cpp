// SPDX-License-Identifier: Apache-2.0

#include "base/random.h"
#include "rdmap/stream_receiver.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rdmap;

namespace {

uint64_t after(AtomicOperation operation, const AtomicOperands& operands, uint64_t current) {
  const auto result = apply(make_atomic_request(operation, operands), current);
  REQUIRE(result);
  return *result;
}

/// Addition bit by bit, as RFC 7306 section 5.1.1 describes it: a carry does not leave a bit whose
/// mask bit is set.
uint64_t add_bit_by_bit(uint64_t a, uint64_t b, uint64_t mask) {
  uint64_t sum = 0;
  unsigned carry = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const unsigned total =
        static_cast<unsigned>(a >> bit & 1) + static_cast<unsigned>(b >> bit & 1) + carry;
    sum |= uint64_t{total & 1} << bit;
    carry = (mask >> bit & 1) != 0 ? 0 : total >> 1;
  }
  return sum;
}

constexpr uint64_t kAll = ~uint64_t{0};

}  // namespace

TEST_CASE("a FetchAdd without mask adds modulo 2 to the 64th") {
  CHECK(after(AtomicOperation::fetch_add, {.operand = 5}, 37) == 42);
  CHECK(after(AtomicOperation::fetch_add, {.operand = 1}, kAll) == 0);
  CHECK(after(AtomicOperation::fetch_add, {.operand = kAll}, 10) == 9);
}

TEST_CASE("a FetchAdd's mask bits end its fields") {
  // Two fields of 32 bits: neither carries into the other.
  const AtomicOperands halves{.operand = 0x0000000100000001, .add_mask = 0x8000000080000000};
  CHECK(after(AtomicOperation::fetch_add, halves, 0x00000005FFFFFFFF) == 0x0000000600000000);
  CHECK(after(AtomicOperation::fetch_add, halves, 0xFFFFFFFFFFFFFFFF) == 0);
  // Every bit its own field is exclusive or.
  CHECK(after(AtomicOperation::fetch_add, {.operand = 0xF0F0, .add_mask = kAll}, 0xFF00) == 0x0FF0);
}

TEST_CASE("a masked FetchAdd equals addition bit by bit") {
  Random random(7306);
  for (int round = 0; round < 10000; ++round) {
    const uint64_t mask = random.next() & random.next() & random.next();
    const AtomicOperands operands{.operand = random.next(), .add_mask = mask};
    const uint64_t current = random.next();
    if (after(AtomicOperation::fetch_add, operands, current) !=
        add_bit_by_bit(current, operands.operand, mask)) {
      FAIL(round);
    }
  }
}

TEST_CASE("a CmpSwap swaps only if the value is the expected one") {
  const AtomicOperands operands{.operand = 99, .compare = 7};
  CHECK(after(AtomicOperation::compare_swap, operands, 7) == 99);
  CHECK(after(AtomicOperation::compare_swap, operands, 8) == 8);
  CHECK(after(AtomicOperation::compare_swap, operands, 7 + (uint64_t{1} << 63)) ==
        7 + (uint64_t{1} << 63));
}

TEST_CASE("a CmpSwap compares and swaps only the bits of its masks") {
  const AtomicOperands operands{
      .operand = kAll, .compare = 0x12, .swap_mask = 0xFF00, .compare_mask = 0xFF};
  CHECK(after(AtomicOperation::compare_swap, operands, 0xABCD0012) == 0xABCDFF12);
  CHECK(after(AtomicOperation::compare_swap, operands, 0xABCD0013) == 0xABCD0013);
  CHECK(after(AtomicOperation::compare_swap, {.operand = 5, .swap_mask = 0}, 0) == 0);
}

TEST_CASE("a Swap goes as a CmpSwap that compares no bits") {
  const AtomicOperands operands{.operand = 99, .compare = 7, .compare_mask = kAll};
  const AtomicRequest request = make_atomic_request(AtomicOperation::swap, operands);
  CHECK(request.operation_code == 2);
  CHECK(request.compare_mask == 0);
  CHECK(after(AtomicOperation::swap, operands, 7) == 99);
  CHECK(after(AtomicOperation::swap, operands, 12345) == 99);
  CHECK(after(AtomicOperation::swap, {.operand = 0, .swap_mask = 0xFF}, 0x1234) == 0x1200);
}

TEST_CASE("only the operation codes of RFC 7306 are done") {
  for (uint8_t code = 0; code < 16; ++code) {
    const AtomicRequest request{.operation_code = code};
    CHECK(apply(request, 1).has_value() == (code == 0 || code == 2));
  }
}
