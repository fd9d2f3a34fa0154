// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace diwarp {

enum class InsertResult : uint8_t {
  added,      ///< none of it was there before
  partial,    ///< some of it was there before, now all is
  duplicate,  ///< all of it was there before, or it is empty
  full,       ///< it would need one range too many; nothing changed
};

/// Which bytes of a sequence are there: ordered, disjoint, never touching half-open ranges, at most
/// `max_ranges` of them. Four ranges need no heap; beyond that memory doubles up to the bound and
/// is kept until destruction, so a sequence that comes in order never allocates.
class IntervalSet {
 public:
  struct Range {
    uint64_t begin;
    uint64_t end;
    friend bool operator==(const Range&, const Range&) = default;
  };

  static constexpr size_t kInlineRanges = 4;

  explicit IntervalSet(size_t max_ranges = 64) : max_ranges_(max_ranges) {}
  IntervalSet(IntervalSet&& other) noexcept;
  IntervalSet& operator=(IntervalSet&& other) noexcept;

  /// Adds [begin, end), begin <= end, and merges what touches. Reports full as well when memory for
  /// another range cannot be had.
  InsertResult insert(uint64_t begin, uint64_t end) noexcept {
    if (size_ != 0 && end > begin) {
      Range& last = data()[size_ - 1];
      if (begin == last.end) {
        last.end = end;
        covered_ += end - begin;
        return InsertResult::added;
      }
    }
    return insert_anywhere(begin, end);
  }

  /// How many bytes are there.
  uint64_t covered() const { return covered_; }

  /// Whether every byte of [begin, end) is there; true when that is empty.
  bool contains(uint64_t begin, uint64_t end) const;

  /// The first maximal part of [from, limit) that is not there; {limit, limit} when there is none.
  std::pair<uint64_t, uint64_t> first_gap(uint64_t from, uint64_t limit) const;

  const Range* begin() const { return data(); }
  const Range* end() const { return data() + size_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t max_ranges() const { return max_ranges_; }

  /// Forgets all ranges, keeps the memory.
  void clear() {
    size_ = 0;
    covered_ = 0;
  }

 private:
  Range* data() { return heap_ ? heap_.get() : inline_.data(); }
  const Range* data() const { return heap_ ? heap_.get() : inline_.data(); }

  InsertResult insert_anywhere(uint64_t begin, uint64_t end) noexcept;
  InsertResult insert_new(size_t position, Range range) noexcept;
  InsertResult merge(size_t first, size_t last, Range range) noexcept;
  bool make_room() noexcept;

  std::array<Range, kInlineRanges> inline_;  // in use while heap_ is null
  std::unique_ptr<Range[]> heap_;
  size_t capacity_ = kInlineRanges;
  size_t size_ = 0;
  size_t max_ranges_;
  uint64_t covered_ = 0;
};

}  // namespace diwarp
