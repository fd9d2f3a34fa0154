// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/interval_set.h"

namespace diwarp::ddp {

/// Why a segment of an untagged message over datagrams is not placed.
enum class SegmentFault : uint8_t {
  none,
  duplicate,      ///< all of its bytes are there already
  contradiction,  ///< overlaps in part, lies behind the end, or names another end
  too_long,       ///< reaches beyond the receive
  range_limit,    ///< one more gap than the bound on ranges allows
};

/// The bytes of one untagged message that have arrived, in any order (RFC 5041 section 5.1; over
/// datagrams the placement order is arbitrary). The segment with the L bit tells the length.
class Reassembly {
 public:
  /// Most ranges that one open message keeps; more disorder than that loses segments.
  static constexpr size_t kMaxRanges = 256;

  Reassembly() = default;

  /// Starts a message that may hold `capacity` bytes. Keeps the storage of the last one.
  void open(uint64_t capacity);

  /// Checks a segment of `length` bytes at `offset` and, if there is no fault, records it; the
  /// caller then places its bytes. A segment with a fault changes nothing. Zero-length segments
  /// carry only the L bit; one that tells nothing new is a duplicate.
  SegmentFault add(uint64_t offset, uint64_t length, bool last);

  /// True when the length is known and every byte below it has arrived.
  bool complete() const;

  std::optional<uint64_t> message_length() const { return length_; }
  uint64_t placed() const { return ranges_.covered(); }

 private:
  SegmentFault check_segment(uint64_t offset, uint64_t length, bool last) const;
  SegmentFault check_overlap(uint64_t begin, uint64_t end, bool last) const;

  IntervalSet ranges_{kMaxRanges};
  uint64_t capacity_ = 0;
  uint64_t highest_ = 0;  // end of the furthest segment so far
  std::optional<uint64_t> length_;
};

}  // namespace diwarp::ddp
