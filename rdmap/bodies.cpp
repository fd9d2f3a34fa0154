// SPDX-License-Identifier: Apache-2.0
#include <cassert>

#include "base/byte_order.h"
#include "rdmap/bodies.h"

namespace diwarp::rdmap {
namespace {

// Where the fields stand in a Read Request (RFC 5040 section 4.4).
constexpr size_t kSinkStagAt = 0;
constexpr size_t kSinkOffsetAt = 4;
constexpr size_t kReadLengthAt = 12;
constexpr size_t kSourceStagAt = 16;
constexpr size_t kSourceOffsetAt = 20;
static_assert(kSourceOffsetAt + sizeof(uint64_t) == kReadRequestBytes);

// In an Atomic Request (RFC 7306 section 5.2.1). The first word has 28 reserved bits and the
// operation code.
constexpr size_t kOperationAt = 0;
constexpr uint32_t kOperationMask = 0x0F;
constexpr size_t kRequestIdAt = 4;
constexpr size_t kAtomicStagAt = 8;
constexpr size_t kAtomicOffsetAt = 12;
constexpr size_t kOperandAt = 20;
constexpr size_t kMaskAt = 28;
constexpr size_t kCompareAt = 36;
constexpr size_t kCompareMaskAt = 44;
static_assert(kCompareMaskAt + sizeof(uint64_t) == kAtomicRequestBytes);

// In an Atomic Response (RFC 7306 section 5.2.2).
constexpr size_t kOriginalIdAt = 0;
constexpr size_t kOriginalValueAt = 4;
static_assert(kOriginalValueAt + sizeof(uint64_t) == kAtomicResponseBytes);

// The operation codes of RFC 7306. 1 is not in use: a Swap is a CmpSwap that compares no bits.
constexpr uint8_t kFetchAdd = 0;
constexpr uint8_t kCompareSwap = 2;

/// Adds field by field: a set bit in `mask` is the top of one, whose carry is lost.
uint64_t masked_sum(uint64_t a, uint64_t b, uint64_t mask) {
  // guard(rows:fetch-add): => return a + b + (mask & 0);
  return ((a & ~mask) + (b & ~mask)) ^ ((a ^ b) & mask);
}

}  // namespace

size_t encode_body(const ReadRequest& request, Bytes out) {
  assert(out.size() >= kReadRequestBytes);
  std::byte* at = out.data();
  store_be(at + kSinkStagAt, request.sink_stag);
  store_be(at + kSinkOffsetAt, request.sink_offset);
  // guard(rows:read-request-layout): request.length => request.length + 1
  store_be(at + kReadLengthAt, request.length);
  store_be(at + kSourceStagAt, request.source_stag);
  store_be(at + kSourceOffsetAt, request.source_offset);
  return kReadRequestBytes;
}

ReadRequest decode_read_request(ConstBytes body) {
  assert(body.size() == kReadRequestBytes);
  const std::byte* at = body.data();
  return {.sink_stag = load_be<uint32_t>(at + kSinkStagAt),
          .sink_offset = load_be<uint64_t>(at + kSinkOffsetAt),
          .length = load_be<uint32_t>(at + kReadLengthAt),
          .source_stag = load_be<uint32_t>(at + kSourceStagAt),
          .source_offset = load_be<uint64_t>(at + kSourceOffsetAt)};
}

size_t encode_immediate(uint64_t value, Bytes out) {
  assert(out.size() >= kImmediateBytes);
  store_be(out.data(), value);  // guard(rows:immediate-layout): value => value + 1
  return kImmediateBytes;
}

uint64_t decode_immediate(ConstBytes body) {
  assert(body.size() == kImmediateBytes);
  return load_be<uint64_t>(body.data());
}

size_t encode_body(const AtomicRequest& request, Bytes out) {
  assert(out.size() >= kAtomicRequestBytes);
  std::byte* at = out.data();
  store_be(at + kOperationAt, request.operation_code & kOperationMask);
  store_be(at + kRequestIdAt, request.request_id);
  store_be(at + kAtomicStagAt, request.stag);
  store_be(at + kAtomicOffsetAt, request.offset);
  // guard(rows:atomic-layout): store_be(at + kOperandAt, request.operand); store_be(at + kMaskAt,
  //     request.mask) => store_be(at + kMaskAt, request.operand); store_be(at + kOperandAt,
  //     request.mask)
  store_be(at + kOperandAt, request.operand);
  store_be(at + kMaskAt, request.mask);
  store_be(at + kCompareAt, request.compare);
  store_be(at + kCompareMaskAt, request.compare_mask);
  return kAtomicRequestBytes;
}

AtomicRequest decode_atomic_request(ConstBytes body) {
  assert(body.size() == kAtomicRequestBytes);
  const std::byte* at = body.data();
  // guard(rows:atomic-reserved): kOperationMask => 0xFF
  const uint32_t operation = load_be<uint32_t>(at + kOperationAt) & kOperationMask;
  return {.operation_code = static_cast<uint8_t>(operation),
          .request_id = load_be<uint32_t>(at + kRequestIdAt),
          .stag = load_be<uint32_t>(at + kAtomicStagAt),
          .offset = load_be<uint64_t>(at + kAtomicOffsetAt),
          .operand = load_be<uint64_t>(at + kOperandAt),
          .mask = load_be<uint64_t>(at + kMaskAt),
          .compare = load_be<uint64_t>(at + kCompareAt),
          .compare_mask = load_be<uint64_t>(at + kCompareMaskAt)};
}

AtomicRequest make_atomic_request(AtomicOperation operation, const AtomicOperands& operands) {
  switch (operation) {
    case AtomicOperation::fetch_add:
      return {.operation_code = kFetchAdd, .operand = operands.operand, .mask = operands.add_mask};
    // guard(rows:swap): kCompareSwap => kFetchAdd
    case AtomicOperation::swap:
      return {
          .operation_code = kCompareSwap, .operand = operands.operand, .mask = operands.swap_mask};
    case AtomicOperation::compare_swap:
      break;
  }
  return {.operation_code = kCompareSwap,
          .operand = operands.operand,
          .mask = operands.swap_mask,
          .compare = operands.compare,
          .compare_mask = operands.compare_mask};
}

std::optional<uint64_t> apply(const AtomicRequest& request, uint64_t current) {
  switch (request.operation_code) {
    case kFetchAdd:
      return masked_sum(current, request.operand, request.mask);
    // guard(rows:compare-swap)
    case kCompareSwap:
      if (((current ^ request.compare) & request.compare_mask) != 0) return current;
      return (current & ~request.mask) | (request.operand & request.mask);
    default:
      return std::nullopt;  // guard(rdmap): std::nullopt => current
  }
}

size_t encode_body(const AtomicResponse& response, Bytes out) {
  assert(out.size() >= kAtomicResponseBytes);
  store_be(out.data() + kOriginalIdAt, response.request_id);
  store_be(out.data() + kOriginalValueAt, response.value);
  return kAtomicResponseBytes;
}

AtomicResponse decode_atomic_response(ConstBytes body) {
  assert(body.size() == kAtomicResponseBytes);
  return {.request_id = load_be<uint32_t>(body.data() + kOriginalIdAt),
          .value = load_be<uint64_t>(body.data() + kOriginalValueAt)};
}

}  // namespace diwarp::rdmap
