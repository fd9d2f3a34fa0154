// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

/// Segmentation of DDP messages (RFC 5041 section 5.2): how a message is cut into segments that the
/// lower layer carries whole, and how the header of each tells its place.
namespace diwarp::ddp {

/// Bytes of payload that a segment may have where the lower layer carries segments of at most
/// `mulpdu` bytes (not 0), of which `header` are no payload. At least 1: every message has an end,
/// however little the lower layer carries.
constexpr size_t max_payload(size_t mulpdu, size_t header) {
  // guard(rows:mulpdu-kept): std::min(mulpdu - 1, header) => 0
  return mulpdu - std::min(mulpdu - 1, header);
}

/// One segment: bytes [offset, end()) of its message's payload.
struct Segment {
  uint64_t offset = 0;
  uint32_t length = 0;  ///< bytes; 0 only in a message of none
  bool last = true;     ///< it ends its message

  constexpr uint64_t end() const { return offset + length; }

  /// Writes the segment's place into a header of DDP, or of a layer above: L and, as the buffer
  /// model has it, MO (untagged) or TO (tagged). `base` is the TO of the message's first byte.
  template <class Header>
  constexpr void set_place(Header& header, uint64_t base) const {
    header.last = last;  // guard(rows:last-flag): = last => = true
    header.message_offset = static_cast<uint32_t>(offset);  // guard(rows:mo-sent)
    header.tagged_offset = base + offset;                   // guard(rows:tagged-offset-sent)
  }
};

/// The segment of bytes [offset, offset + length) of a message of `message` bytes.
constexpr Segment segment_of(uint64_t message, uint64_t offset, uint32_t length) {
  return {.offset = offset, .length = length, .last = offset + length == message};
}

/// The next segment of a message of `message` bytes, of which those before `offset` are cut. A
/// message of no bytes is one segment of none.
constexpr Segment next_segment(uint64_t message, uint64_t offset, size_t max_payload) {
  const uint64_t length = std::min<uint64_t>(max_payload, message - offset);
  return segment_of(message, offset, static_cast<uint32_t>(length));
}

}  // namespace diwarp::ddp
