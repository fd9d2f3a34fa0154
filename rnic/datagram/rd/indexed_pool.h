// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace diwarp::rnic {

/// Objects that are named by a number, made when first needed and then used again. T has `next`,
/// which is the pool's while the object is free, and `index`, its number.
template <class T>
class IndexedPool {
 public:
  /// Makes sure that `count` are free. False where there is no memory for them.
  bool reserve(size_t count) noexcept try {
    while (free_count_ < count) add();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  /// A fresh one; there must be one free.
  T& take() {
    T& taken = *free_;
    free_ = taken.next;
    --free_count_;
    const uint32_t index = taken.index;
    taken = T{};
    taken.index = index;
    return taken;
  }
  void give(T& object) {
    object.next = free_;
    free_ = &object;
    ++free_count_;
  }
  T& at(uint32_t index) const { return *all_[index]; }

  /// Destroys the free ones where they are most of those that there are; else that would cost more
  /// than it gives back. 12 bytes stay for each number ever used.
  void trim() noexcept {
    if (2 * free_count_ <= all_.size() - vacant_.size()) return;
    for (; free_ != nullptr; --free_count_) {
      const uint32_t index = free_->index;
      free_ = free_->next;
      vacant_.push_back(index);
      all_[index].reset();
    }
  }

 private:
  /// A capacity that one more needs.
  static size_t grown(const std::vector<std::unique_ptr<T>>& all) {
    return all.size() < all.capacity() ? all.capacity() : std::max<size_t>(16, 2 * all.size());
  }

  void add() {
    auto made = std::make_unique<T>();
    if (vacant_.empty()) {
      all_.reserve(grown(all_));
      vacant_.reserve(grown(all_));  // so that trim() allocates nothing
      all_.push_back(nullptr);
      vacant_.push_back(static_cast<uint32_t>(all_.size() - 1));
    }
    const uint32_t index = vacant_.back();
    vacant_.pop_back();
    made->index = index;
    all_[index] = std::move(made);
    give(*all_[index]);
  }

  std::vector<std::unique_ptr<T>> all_;  // null: the number is in vacant_
  std::vector<uint32_t> vacant_;
  T* free_ = nullptr;
  size_t free_count_ = 0;
};

}  // namespace diwarp::rnic
