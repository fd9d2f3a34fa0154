// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "diwarp/export.h"

namespace diwarp {

/// Which bytes of a message over datagrams are valid: ordered, disjoint ranges that never touch, of
/// offsets from the message's beginning (datagram-iWARP, section IV.B.4). A value: copies share
/// what they name, and are made without allocation. A map of one range or none holds no memory;
/// others hold a place of their queue pair's bounded pool until the last copy is gone, so release
/// maps (destroy or overwrite them) when they have been looked at. May be used after its queue pair
/// is gone, and read by any number of threads.
class DIWARP_EXPORT ValidityMap {
 public:
  /// Bytes [offset, offset + length).
  struct Range {
    uint64_t offset = 0;
    uint64_t length = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };

  class RangeView;
  class GapView;
  /// Several ranges, as the library keeps them: nothing for programs.
  class Node;

  /// Of a message of no bytes.
  ValidityMap() = default;
  /// Of a message of `length` bytes of which the one range is valid (none if its length is 0).
  ValidityMap(uint64_t length, Range valid) : length_(length), only_(valid) {}
  ValidityMap(const ValidityMap& other) noexcept;
  ValidityMap(ValidityMap&& other) noexcept
      : length_(other.length_), only_(other.only_), node_(std::exchange(other.node_, nullptr)) {}
  ValidityMap& operator=(const ValidityMap& other) noexcept;
  ValidityMap& operator=(ValidityMap&& other) noexcept {
    Node* const taken = std::exchange(other.node_, nullptr);
    if (node_ != nullptr) release();  // the old ranges go at once, not when `other` does
    length_ = other.length_;
    only_ = other.only_;
    node_ = taken;
    return *this;
  }
  ~ValidityMap() {
    if (node_ != nullptr) release();
  }

  /// Bytes of the whole message, and how many of them are valid.
  uint64_t length() const { return length_; }
  uint64_t valid_bytes() const;
  uint64_t missing_bytes() const { return length_ - valid_bytes(); }
  bool complete() const { return valid_bytes() == length_; }

  /// Whether all of [offset, offset + length) is valid; true for no bytes inside the message.
  bool contains(uint64_t offset, uint64_t length) const;
  /// The first part that is missing; length 0 (at the message's end) if nothing is.
  Range first_gap() const;

  /// The valid ranges in order; for use in a loop while the map lives.
  RangeView ranges() const;
  /// The ranges that are missing, in order; for use in a loop while the map lives.
  GapView gaps() const;
  size_t range_count() const;

  /// Ranges that merge() and intersect() give room to at most: 1 MiB. They take memory of the heap,
  /// and give back a place of the pool that this map held.
  static constexpr size_t kMaxRanges = size_t{1} << 16;

  /// Adds what is valid in `part`, the map of bytes [offset, offset + part.length()) of this
  /// message: another map of the same message, or that of a Read which asked for a gap. False where
  /// the result would have more than kMaxRanges ranges, or memory cannot be had: then this map
  /// keeps what it had, and ranges of `part` that found no room are left out, so they count as
  /// missing. Throws Error(invalid_argument) if the part does not lie within the message.
  bool merge(const ValidityMap& part, uint64_t offset = 0);

  /// Keeps only what is valid in `other`, too, which is a map of the same message. False where the
  /// result would have more than kMaxRanges ranges, or memory cannot be had: then only its first
  /// ranges, or the first one, are left, and the rest counts as missing. Throws
  /// Error(invalid_argument) if the lengths of the messages differ.
  bool intersect(const ValidityMap& other);

 private:
  /// Takes over a reference to `node`.
  ValidityMap(Node& node, uint64_t length) : length_(length), node_(&node) {}
  /// The range at `index`, which must be below range_count().
  Range range(size_t index) const;
  void release() noexcept;

  uint64_t length_ = 0;
  Range only_;            // while node_ is null; no range if its length is 0
  Node* node_ = nullptr;  // reference-counted, immutable
};

/// A sequence of ranges to iterate over.
class DIWARP_EXPORT ValidityMap::RangeView {
 public:
  class Iterator {
   public:
    using value_type = Range;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    Iterator(const ValidityMap* map, size_t index) : map_(map), index_(index) {}
    Range operator*() const { return map_->range(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {map_, index_++}; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const ValidityMap* map_ = nullptr;
    size_t index_ = 0;
  };

  explicit RangeView(const ValidityMap& map) : map_(&map) {}
  Iterator begin() const { return {map_, 0}; }
  Iterator end() const { return {map_, map_->range_count()}; }
  size_t size() const { return map_->range_count(); }
  bool empty() const { return size() == 0; }

 private:
  const ValidityMap* map_;
};

/// A sequence of gaps to iterate over. Gap i lies before range i; the last one after all ranges.
class DIWARP_EXPORT ValidityMap::GapView {
 public:
  class Iterator {
   public:
    using value_type = Range;
    using difference_type = ptrdiff_t;
    Iterator() = default;
    Iterator(const ValidityMap* map, size_t index);
    Range operator*() const;
    Iterator& operator++();
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    void skip_empty();
    const ValidityMap* map_ = nullptr;
    size_t index_ = 0;  // of the range after the gap
  };

  explicit GapView(const ValidityMap& map) : map_(&map) {}
  Iterator begin() const { return {map_, 0}; }
  Iterator end() const { return {map_, map_->range_count() + 1}; }
  bool empty() const { return begin() == end(); }

 private:
  const ValidityMap* map_;
};

inline ValidityMap::RangeView ValidityMap::ranges() const { return RangeView(*this); }
inline ValidityMap::GapView ValidityMap::gaps() const { return GapView(*this); }

}  // namespace diwarp
