// SPDX-License-Identifier: Apache-2.0
#include "diwarp/validity_map.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/validity_pool.h"
#include "diwarp/error.h"

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

bool ValidityMap::contains(uint64_t offset, uint64_t length) const {
  // guard(records): condition => offset + length > length_
  if (offset > length_ || length > length_ - offset) return false;  // guard(records)
  if (length == 0) return true;
  if (node_ != nullptr) return node_->ranges.contains(offset, offset + length);
  // guard(records): without only_.offset <= offset &&
  // guard(records): => return only_.offset <= offset;
  return only_.offset <= offset && offset + length <= only_.offset + only_.length;
}

/// Where there is none, the end of the gaps is empty, too.
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

// --- Merging.

namespace {

/// Adds the ranges of `map`, moved by `offset`. False where some found no room; the others are in.
bool add_ranges(IntervalSet& set, const ValidityMap& map, uint64_t offset) {
  bool all = true;
  for (const ValidityMap::Range range : map.ranges()) {
    const uint64_t begin = offset + range.offset;
    all = set.insert(begin, begin + range.length) != InsertResult::full && all;
  }
  return all;
}

/// The map of a message of `length` bytes with these ranges; nothing where memory cannot be had.
std::optional<ValidityMap> map_of(uint64_t length, IntervalSet&& ranges) {
  if (ranges.size() <= 1) return make_validity_map(length, ranges);
  auto* const node = new (std::nothrow) ValidityMap::Node(ranges.max_ranges());
  if (node == nullptr) return std::nullopt;
  node->ranges = std::move(ranges);
  return node->map(length);
}

/// The ranges that both have, in order, until `common` is full. False where it was.
bool add_common(IntervalSet& common, const ValidityMap& a, const ValidityMap& b) {
  auto one = a.ranges().begin();
  auto other = b.ranges().begin();
  while (one != a.ranges().end() && other != b.ranges().end()) {
    const uint64_t one_end = (*one).offset + (*one).length;
    const uint64_t other_end = (*other).offset + (*other).length;
    const uint64_t begin = std::max((*one).offset, (*other).offset);
    const uint64_t end = std::min(one_end, other_end);
    if (begin < end && common.insert(begin, end) == InsertResult::full) return false;
    one_end < other_end ? ++one : ++other;
  }
  return true;
}

}  // namespace

bool ValidityMap::merge(const ValidityMap& part, uint64_t offset) {
  if (offset > length_ || part.length_ > length_ - offset)
    throw Error(Errc::invalid_argument,
                "A map of " + std::to_string(part.length_) + " bytes from " +
                    std::to_string(offset) + " on does not lie within a message of " +
                    std::to_string(length_) + ": give the offset of the part in the message");
  if (complete() || part.valid_bytes() == 0) return true;
  IntervalSet merged(std::max(kMaxRanges, range_count()));
  if (!add_ranges(merged, *this, 0)) return false;
  const bool all = add_ranges(merged, part, offset);
  std::optional<ValidityMap> map = map_of(length_, std::move(merged));
  if (!map) return false;
  *this = std::move(*map);
  return all;
}

bool ValidityMap::intersect(const ValidityMap& other) {
  if (other.length_ != length_)
    throw Error(Errc::invalid_argument, "Maps of messages of " + std::to_string(length_) + " and " +
                                            std::to_string(other.length_) +
                                            " bytes have nothing in common: give maps of one");
  IntervalSet common(kMaxRanges);
  const bool all = add_common(common, *this, other);
  const IntervalSet::Range first = common.empty() ? IntervalSet::Range{0, 0} : *common.begin();
  std::optional<ValidityMap> map = map_of(length_, std::move(common));
  if (map)
    *this = std::move(*map);
  else
    *this = ValidityMap(length_, Range{first.begin, first.end - first.begin});
  return map && all;
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
