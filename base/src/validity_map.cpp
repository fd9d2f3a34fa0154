// SPDX-License-Identifier: Apache-2.0
#include "diwarp/validity_map.h"

#include "base/validity_pool.h"

namespace diwarp {

ValidityMap::ValidityMap(const ValidityMap& other) noexcept
    : length_(other.length_), only_(other.only_), node_(other.node_) {
  if (node_ != nullptr) node_->share();
}

ValidityMap& ValidityMap::operator=(const ValidityMap& other) noexcept {
  return *this = ValidityMap(other);
}

void ValidityMap::release() noexcept { node_->release(); }

uint64_t ValidityMap::valid_bytes() const {
  return node_ == nullptr ? only_.length : node_->ranges.covered();
}

bool ValidityMap::covers(uint64_t offset, uint64_t length) const {
  if (offset > length_ || length > length_ - offset) return false;
  if (length == 0) return true;
  if (node_ != nullptr) return node_->ranges.contains(offset, offset + length);
  return only_.offset <= offset && offset + length <= only_.offset + only_.length;
}

/// Where there is none, what stands at the end of the gaps is empty, too.
ValidityMap::Range ValidityMap::first_gap() const { return *gaps().begin(); }

size_t ValidityMap::range_count() const {
  if (node_ != nullptr) return node_->ranges.size();
  return only_.length == 0 ? 0 : 1;
}

ValidityMap::Range ValidityMap::range(size_t index) const {
  if (node_ == nullptr) return only_;
  const IntervalSet::Range& range = node_->ranges.begin()[index];
  return {range.begin, range.end - range.begin};
}

// --- Gaps. Ranges never touch, so only the first gap and the last one can be empty.

ValidityMap::GapView::Iterator::Iterator(const ValidityMap* map, size_t index)
    : map_(map), index_(index) {
  skip_empty();
}

ValidityMap::Range ValidityMap::GapView::Iterator::operator*() const {
  const size_t count = map_->range_count();
  const Range before = index_ == 0 ? Range{} : map_->range(index_ - 1);
  const uint64_t begin = before.offset + before.length;
  const uint64_t end = index_ < count ? map_->range(index_).offset : map_->length();
  return {begin, end - begin};
}

ValidityMap::GapView::Iterator& ValidityMap::GapView::Iterator::operator++() {
  ++index_;
  skip_empty();
  return *this;
}

void ValidityMap::GapView::Iterator::skip_empty() {
  while (index_ <= map_->range_count() && (**this).length == 0) ++index_;
}

}  // namespace diwarp
