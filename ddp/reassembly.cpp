// SPDX-License-Identifier: Apache-2.0
#include "ddp/reassembly.h"

#include <algorithm>

namespace diwarp::ddp {
namespace {

/// Whether `length` bytes at `offset` lie within the first `limit`; safe against 64-bit wrap.
bool fits(uint64_t offset, uint64_t length, uint64_t limit) {
  // guard(reassembly): => return offset + length <= limit;
  return offset <= limit && length <= limit - offset;
}

}  // namespace

void Reassembly::open(uint64_t capacity) {
  ranges_.clear();  // guard(reassembly)
  capacity_ = capacity;
  highest_ = 0;
  length_.reset();  // guard(reassembly)
}

SegmentFault Reassembly::add(uint64_t offset, uint64_t length, bool last) {
  const SegmentFault fault = check_segment(offset, length, last);
  if (fault != SegmentFault::none) return fault;

  const uint64_t end = offset + length;
  // guard(reassembly): condition => length != 0 && (ranges_.insert(offset, end), false)
  if (length != 0 && ranges_.insert(offset, end) == InsertResult::full) {
    return SegmentFault::range_limit;
  }
  highest_ = std::max(highest_, end);
  if (last) length_ = end;
  return SegmentFault::none;
}

SegmentFault Reassembly::check_segment(uint64_t offset, uint64_t length, bool last) const {
  // A segment that lies after the known end is wrong itself: it does not show that the message is
  // too long for the receive.
  // guard(reassembly)
  if (length_ && !fits(offset, length, *length_)) return SegmentFault::contradiction;
  if (!fits(offset, length, capacity_)) return SegmentFault::too_long;  // guard(reassembly)

  const uint64_t end = offset + length;
  // Once the end is known, highest_ equals it: an earlier end contradicts it, too.
  if (last && end < highest_) return SegmentFault::contradiction;  // guard(reassembly)
  // guard(reassembly): => if (length == 0) return SegmentFault::none;
  if (length == 0) return last && !length_ ? SegmentFault::none : SegmentFault::duplicate;
  return check_overlap(offset, end, last);
}

SegmentFault Reassembly::check_overlap(uint64_t begin, uint64_t end, bool last) const {
  if (begin >= highest_) return SegmentFault::none;
  const auto [gap_begin, gap_end] = ranges_.first_gap(begin, end);
  if (gap_begin == begin && gap_end == end) return SegmentFault::none;
  if (gap_begin != end) return SegmentFault::contradiction;  // guard(reassembly)
  // The same bytes once more. If they end the message only now, the first copy said otherwise.
  // guard(reassembly): => return SegmentFault::none;
  // guard(reassembly): => return SegmentFault::duplicate;
  return last && !length_ ? SegmentFault::contradiction : SegmentFault::duplicate;
}

// guard(reassembly): length_ && ranges_.covered() == *length_ => length_.has_value()
bool Reassembly::complete() const { return length_ && ranges_.covered() == *length_; }

}  // namespace diwarp::ddp
