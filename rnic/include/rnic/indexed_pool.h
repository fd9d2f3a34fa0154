// SPDX-License-Identifier: Apache-2.0
#pragma once

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

 private:
  void add() {
    all_.push_back(std::make_unique<T>());
    all_.back()->index = static_cast<uint32_t>(all_.size() - 1);
    give(*all_.back());
  }

  std::vector<std::unique_ptr<T>> all_;
  T* free_ = nullptr;
  size_t free_count_ = 0;
};

}  // namespace diwarp::rnic
