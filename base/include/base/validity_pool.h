// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/interval_set.h"
#include "diwarp/validity_map.h"

/// Where validity maps come from: a bounded pool, and the maps while they grow.
namespace diwarp {

class ValidityPool;

/// The ranges of a map that has several. Its maker writes it; from then on copies of the map share
/// it, and nothing changes it. The last copy to go gives it back.
class ValidityMap::Node {
 public:
  explicit Node(size_t max_ranges) : ranges(max_ranges) {}

  void share() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept;
  /// The map of a message of `length` bytes, which takes over a reference.
  ValidityMap map(uint64_t length) noexcept { return {*this, length}; }

  IntervalSet ranges;

 private:
  friend class ValidityPool;

  std::atomic<uint32_t> references_{1};
  std::shared_ptr<ValidityPool> home_;  // while in use; null: it is of no pool
  Node* next_ = nullptr;                // in one of the pool's lists
};

/// At most so many maps of several ranges at once, each of at most so many ranges. Nodes are made
/// when they are first needed, and used again with the memory they have got. acquire() is for one
/// thread at a time; a map in use comes back from any thread, and keeps the pool alive until then.
class ValidityPool : public std::enable_shared_from_this<ValidityPool> {
  struct Key {};

 public:
  static std::shared_ptr<ValidityPool> create(size_t max_maps, size_t max_ranges) {
    return std::make_shared<ValidityPool>(Key(), max_maps, max_ranges);
  }
  ValidityPool(Key, size_t max_maps, size_t max_ranges)
      : max_maps_(max_maps), max_ranges_(max_ranges) {}
  ValidityPool(const ValidityPool&) = delete;
  ValidityPool& operator=(const ValidityPool&) = delete;

  /// An empty node with one reference; null when all are in use, or memory cannot be had.
  ValidityMap::Node* acquire() noexcept;

 private:
  friend class ValidityMap::Node;
  void release(ValidityMap::Node& node) noexcept;
  ValidityMap::Node* make() noexcept;

  const size_t max_maps_;
  const size_t max_ranges_;
  std::vector<std::unique_ptr<ValidityMap::Node>> nodes_;
  ValidityMap::Node* free_ = nullptr;  // of the thread that acquires
  // Any thread pushes; that thread takes all at once, so that no node can come back in between.
  std::atomic<ValidityMap::Node*> returned_{nullptr};
};

/// How much of some bytes is there.
enum class Presence : uint8_t { none, part, all };

/// A validity map while it grows. One range needs no memory; the second takes a node of the pool.
class ValidityBuilder {
 public:
  ValidityBuilder() = default;
  ~ValidityBuilder() { clear(); }
  ValidityBuilder(const ValidityBuilder&) = delete;
  ValidityBuilder& operator=(const ValidityBuilder&) = delete;

  /// How much of [begin, end), which is not empty, is there.
  Presence presence(uint64_t begin, uint64_t end) const;

  /// Adds [begin, end), which is not empty. `full`, and nothing changed, where it would be one
  /// range too many, or the second one and the pool has no map left.
  InsertResult insert(uint64_t begin, uint64_t end, ValidityPool& pool) noexcept;

  /// How many bytes are there.
  uint64_t covered() const {
    return node_ == nullptr ? only_.end - only_.begin : node_->ranges.covered();
  }

  /// Hands the ranges over as a map of a message of `length` bytes, and is empty then.
  ValidityMap take(uint64_t length) noexcept;
  /// A map of what is there by now, with a node that is of no pool.
  ValidityMap copy(uint64_t length) const noexcept;
  void clear() noexcept;

 private:
  IntervalSet::Range only_{0, 0};      // while node_ is null; none if it is empty
  ValidityMap::Node* node_ = nullptr;  // this has the only reference
};

/// The map of a message of `length` bytes of which `ranges` are valid. It holds no place of a pool.
/// If there is no memory for all ranges it says of all but the first that they are not valid.
ValidityMap make_validity_map(uint64_t length, const IntervalSet& ranges) noexcept;

}  // namespace diwarp
