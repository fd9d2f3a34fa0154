// SPDX-License-Identifier: Apache-2.0
#include "base/validity_pool.h"

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace diwarp {

void ValidityMap::Node::release() noexcept {
  // The reads of other copies happened before the last one gives the node back.
  // guard(records): => references_.fetch_sub(1);
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (home_ == nullptr) {
    delete this;
    return;
  }
  // The pool, and with it this node, may end with this reference.
  const std::shared_ptr<ValidityPool> home = std::move(home_);
  home->release(*this);
}

namespace {

ValidityMap one_range(uint64_t length, IntervalSet::Range range) {
  return {length, ValidityMap::Range{range.begin, range.end - range.begin}};
}

}  // namespace

ValidityMap::Node* ValidityPool::acquire() noexcept {
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  ValidityMap::Node* node = free_;
  if (node != nullptr)
    free_ = std::exchange(node->next_, nullptr);
  else
    node = make();
  if (node == nullptr) return nullptr;
  node->references_.store(1, std::memory_order_relaxed);
  node->home_ = shared_from_this();
  return node;
}

ValidityMap::Node* ValidityPool::make() noexcept {
  if (nodes_.size() >= max_maps_) return nullptr;  // guard(records)
  try {
    nodes_.push_back(std::make_unique<ValidityMap::Node>(max_ranges_));
    return nodes_.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ValidityPool::release(ValidityMap::Node& node) noexcept {
  node.ranges.clear();  // guard(records)
  node.next_ = returned_.load(std::memory_order_relaxed);
  while (!returned_.compare_exchange_weak(node.next_, &node, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

Presence ValidityBuilder::presence(uint64_t begin, uint64_t end) const {
  assert(begin < end);
  if (node_ == nullptr) {
    if (end <= only_.begin || only_.end <= begin) return Presence::none;  // guard(records)
    // guard(records): without only_.begin <= begin &&
    // guard(records): without && end <= only_.end
    return only_.begin <= begin && end <= only_.end ? Presence::all : Presence::part;
  }
  const IntervalSet& ranges = node_->ranges;
  if (ranges.empty() || ranges.end()[-1].end <= begin) return Presence::none;
  const auto gap = ranges.first_gap(begin, end);
  if (gap == std::pair(begin, end)) return Presence::none;  // guard(records)
  // guard(records): => return Presence::all;
  return gap.first == end ? Presence::all : Presence::part;
}

InsertResult ValidityBuilder::insert(uint64_t begin, uint64_t end, ValidityPool& pool) noexcept {
  assert(begin < end);
  if (node_ != nullptr) return node_->ranges.insert(begin, end);
  const bool first = only_.begin == only_.end;
  // guard(records): condition => first || begin <= only_.end
  // guard(records): condition => first || only_.begin <= end
  if (first || (begin <= only_.end && only_.begin <= end)) {
    const uint64_t before = covered();
    only_ = first ? IntervalSet::Range{begin, end}
                  : IntervalSet::Range{std::min(begin, only_.begin), std::max(end, only_.end)};
    const uint64_t added = covered() - before;
    if (added == 0) return InsertResult::duplicate;
    return added == end - begin ? InsertResult::added : InsertResult::partial;
  }
  node_ = pool.acquire();
  if (node_ == nullptr) return InsertResult::full;
  node_->ranges.insert(only_.begin, only_.end);
  return node_->ranges.insert(begin, end);
}

ValidityMap ValidityBuilder::take(uint64_t length) noexcept {
  // guard(records): condition => node_ != nullptr
  if (node_ != nullptr && node_->ranges.size() > 1) {
    only_ = {0, 0};  // the one that the node was begun with
    return std::exchange(node_, nullptr)->map(length);
  }
  const IntervalSet::Range only = node_ == nullptr ? only_ : *node_->ranges.begin();
  clear();
  return one_range(length, only);
}

ValidityMap ValidityBuilder::copy(uint64_t length) const noexcept {
  return node_ == nullptr ? one_range(length, only_) : make_validity_map(length, node_->ranges);
}

void ValidityBuilder::clear() noexcept {
  if (node_ != nullptr) std::exchange(node_, nullptr)->release();
  only_ = {0, 0};
}

ValidityMap make_validity_map(uint64_t length, const IntervalSet& ranges) noexcept {
  if (ranges.empty()) return {length, ValidityMap::Range{}};
  if (ranges.size() > 1) {
    if (auto* node = new (std::nothrow) ValidityMap::Node(ranges.size())) {
      for (const IntervalSet::Range& range : ranges) node->ranges.insert(range.begin, range.end);
      return node->map(length);
    }
  }
  return one_range(length, *ranges.begin());
}

}  // namespace diwarp
