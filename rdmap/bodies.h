// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "diwarp/types.h"

/// The bodies that follow the DDP header in messages of one segment.
namespace diwarp::rdmap {

/// RFC 5040 section 4.4: a Read Request's body, 28 bytes.
struct ReadRequest {
  uint32_t sink_stag = 0;
  uint64_t sink_offset = 0;
  uint32_t length = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;
};
inline constexpr size_t kReadRequestBytes = 28;
size_t encode_body(const ReadRequest& request, Bytes out);
ReadRequest decode_read_request(ConstBytes body);  ///< of exactly 28 bytes

/// RFC 7306 section 6: immediate data, 8 bytes.
inline constexpr size_t kImmediateBytes = 8;
size_t encode_immediate(uint64_t value, Bytes out);
uint64_t decode_immediate(ConstBytes body);

/// RFC 7306 section 5: atomic operations on 8 bytes.
enum class AtomicOperation : uint8_t { fetch_add, swap, compare_swap };
struct AtomicRequest {
  uint8_t operation_code = 0;  ///< as on the wire
  uint32_t request_id = 0;
  uint32_t stag = 0;
  uint64_t offset = 0;
  uint64_t operand = 0;  ///< the number to add, or the new value
  uint64_t mask = 0;
  uint64_t compare = 0;
  uint64_t compare_mask = 0;
};
inline constexpr size_t kAtomicRequestBytes = 52;
size_t encode_body(const AtomicRequest& request, Bytes out);
AtomicRequest decode_atomic_request(ConstBytes body);  ///< of exactly 52 bytes

/// The request for a verbs operation, without STag, offset and identifier. A Swap goes as a CmpSwap
/// that compares no bits.
AtomicRequest make_atomic_request(AtomicOperation operation, const AtomicOperands& operands);
/// The value to store where `current` stood; nothing if the wire's operation code is not known.
std::optional<uint64_t> apply(const AtomicRequest& request, uint64_t current);

struct AtomicResponse {
  uint32_t request_id = 0;
  uint64_t value = 0;  ///< the value before
};
inline constexpr size_t kAtomicResponseBytes = 12;
size_t encode_body(const AtomicResponse& response, Bytes out);
AtomicResponse decode_atomic_response(ConstBytes body);  ///< of exactly 12 bytes

}  // namespace diwarp::rdmap
