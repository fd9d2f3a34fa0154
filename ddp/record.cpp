// SPDX-License-Identifier: Apache-2.0
#include "ddp/record.h"

#include <cassert>

namespace diwarp::ddp {

void Record::open(const RecordInfo& info) {
  info_ = info;
  ended_ = false;  // guard(records)
  bytes_.clear();
}

SegmentFault Record::add(uint32_t offset, uint32_t length, bool last, ValidityPool& pool) noexcept {
  const SegmentFault fault = check_segment(offset, length, last);
  if (fault != SegmentFault::none) return fault;
  const uint64_t end = uint64_t{offset} + length;
  // guard(records): condition => length != 0 && (bytes_.insert(offset, end, pool), false)
  if (length != 0 && bytes_.insert(offset, end, pool) == InsertResult::full) {
    return SegmentFault::range_limit;
  }
  if (last) ended_ = true;  // guard(records)
  return SegmentFault::none;
}

SegmentFault Record::check_segment(uint32_t offset, uint32_t length, bool last) const {
  const uint64_t end = uint64_t{offset} + length;
  assert(end <= info_.length);
  // guard(records): => if (length == 0) return SegmentFault::none;
  // guard(records): without last && !ended_ ? SegmentFault::none :
  if (length == 0) return last && !ended_ ? SegmentFault::none : SegmentFault::duplicate;
  switch (bytes_.presence(offset, end)) {
    case Presence::none:
      return SegmentFault::none;
    case Presence::part:
      return SegmentFault::contradiction;  // guard(records): => return SegmentFault::none;
    case Presence::all:
      break;  // guard(records): break => return SegmentFault::none
  }
  return SegmentFault::duplicate;
}

}  // namespace diwarp::ddp
