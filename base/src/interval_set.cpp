// SPDX-License-Identifier: Apache-2.0
#include "base/interval_set.h"

#include <algorithm>
#include <cassert>
#include <new>

namespace diwarp {
namespace {

using Range = IntervalSet::Range;

/// The first range that ends after `position`: the one that holds it, or the next.
const Range* ending_behind(const Range* first, const Range* last, uint64_t position) {
  return std::upper_bound(first, last, position,
                          [](uint64_t value, const Range& range) { return value < range.end; });
}

}  // namespace

IntervalSet::IntervalSet(IntervalSet&& other) noexcept
    : inline_(other.inline_),
      heap_(std::move(other.heap_)),
      capacity_(std::exchange(other.capacity_, kInlineRanges)),
      size_(std::exchange(other.size_, 0)),
      max_ranges_(other.max_ranges_),
      covered_(std::exchange(other.covered_, 0)) {}

IntervalSet& IntervalSet::operator=(IntervalSet&& other) noexcept {
  if (this == &other) return *this;
  inline_ = other.inline_;
  heap_ = std::move(other.heap_);
  capacity_ = std::exchange(other.capacity_, kInlineRanges);
  size_ = std::exchange(other.size_, 0);
  max_ranges_ = other.max_ranges_;
  covered_ = std::exchange(other.covered_, 0);
  return *this;
}

InsertResult IntervalSet::insert_anywhere(uint64_t begin, uint64_t end) noexcept {
  assert(begin <= end);
  if (begin >= end) return InsertResult::duplicate;
  const Range* ranges = data();
  // [first, last) are the ranges that overlap or touch [begin, end).
  const Range* first =
      std::lower_bound(ranges, ranges + size_, begin,
                       [](const Range& range, uint64_t value) { return range.end < value; });
  const Range* last =
      std::upper_bound(first, ranges + size_, end,
                       [](uint64_t value, const Range& range) { return value < range.begin; });
  const auto from = static_cast<size_t>(first - ranges);
  const auto to = static_cast<size_t>(last - ranges);
  return from == to ? insert_new(from, {begin, end}) : merge(from, to, {begin, end});
}

InsertResult IntervalSet::insert_new(size_t position, Range range) noexcept {
  if (size_ >= max_ranges_ || !make_room()) return InsertResult::full;
  Range* ranges = data();
  std::move_backward(ranges + position, ranges + size_, ranges + size_ + 1);
  ranges[position] = range;
  ++size_;
  covered_ += range.end - range.begin;
  return InsertResult::added;
}

InsertResult IntervalSet::merge(size_t first, size_t last, Range range) noexcept {
  Range* ranges = data();
  const Range merged{std::min(range.begin, ranges[first].begin),
                     std::max(range.end, ranges[last - 1].end)};
  uint64_t added = merged.end - merged.begin;
  for (size_t i = first; i < last; ++i) added -= ranges[i].end - ranges[i].begin;
  ranges[first] = merged;
  std::move(ranges + last, ranges + size_, ranges + first + 1);
  size_ -= last - first - 1;
  covered_ += added;
  if (added == 0) return InsertResult::duplicate;
  return added == range.end - range.begin ? InsertResult::added : InsertResult::partial;
}

bool IntervalSet::make_room() noexcept {
  if (size_ < capacity_) return true;
  const size_t wanted = std::min(2 * capacity_, max_ranges_);
  std::unique_ptr<Range[]> larger(new (std::nothrow) Range[wanted]);
  if (!larger) return false;
  std::copy(begin(), end(), larger.get());
  heap_ = std::move(larger);
  capacity_ = wanted;
  return true;
}

bool IntervalSet::contains(uint64_t from, uint64_t to) const {
  if (from >= to) return true;
  const Range* found = ending_behind(begin(), end(), from);
  return found != end() && found->begin <= from && to <= found->end;
}

std::pair<uint64_t, uint64_t> IntervalSet::first_gap(uint64_t from, uint64_t limit) const {
  const Range* range = ending_behind(begin(), end(), from);
  if (range != end() && range->begin <= from) {
    from = range->end;
    ++range;
  }
  if (from >= limit) return {limit, limit};
  return {from, range == end() ? limit : std::min(limit, range->begin)};
}

}  // namespace diwarp
