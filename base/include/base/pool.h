// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>

namespace diwarp {

/// A fixed number of objects, made once and used again and again: acquire() gives an object as its
/// last user left it. For one thread.
template <class T>
class Pool {
 public:
  explicit Pool(size_t count)
      : items_(std::make_unique<T[]>(count)),
        free_(std::make_unique<T*[]>(count)),
        count_(count),
        available_(count) {
    // The lowest address is given out first; after that the most recently released, still in cache.
    for (size_t i = 0; i < count; ++i) free_[i] = &items_[count - 1 - i];
  }

  /// nullptr when all are in use.
  T* acquire() { return available_ == 0 ? nullptr : free_[--available_]; }

  /// `item` must have come from acquire() and not been released since.
  void release(T* item) {
    assert(owns(item) && available_ < count_);
    free_[available_++] = item;
  }

  size_t available() const { return available_; }
  size_t capacity() const { return count_; }

  bool owns(const T* item) const {
    const std::less<const T*> before;
    return !before(item, items_.get()) && before(item, items_.get() + count_);
  }

 private:
  std::unique_ptr<T[]> items_;
  std::unique_ptr<T*[]> free_;  // the first available_ entries
  size_t count_;
  size_t available_;
};

}  // namespace diwarp
