// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace diwarp {

/// Objects that are used again and again, each as its last user left it. They are made when none is
/// free, or at once where their number is given; none is destroyed before the pool. For one thread.
template <class T>
class Pool {
 public:
  Pool() = default;
  /// Makes `count` in one piece of memory: acquire() needs no more for them.
  explicit Pool(size_t count) {
    blocks_.reserve(1);
    free_.reserve(count);
    blocks_.push_back({std::make_unique<T[]>(count), count});
    // The lowest address is given out first; after that the most recently released, still in cache.
    for (size_t i = 0; i < count; ++i) free_.push_back(&blocks_[0].items[count - 1 - i]);
    count_ = count;
  }

  /// nullptr when all are in use.
  T* acquire() {
    if (free_.empty()) return nullptr;
    T* const item = free_.back();
    free_.pop_back();
    return item;
  }

  /// One that is free, or else a new one, made of these. May throw std::bad_alloc; then nothing has
  /// changed.
  template <class... Arguments>
  T& acquire_or_make(Arguments&&... arguments) {
    if (T* const item = acquire()) return *item;
    if (blocks_.size() == blocks_.capacity()) {
      const size_t more = std::max<size_t>(8, 2 * blocks_.size());
      free_.reserve(count_ + more);  // so that release() allocates nothing
      blocks_.reserve(blocks_.size() + more);
    }
    std::unique_ptr<T[]> made(new T[1]{T(std::forward<Arguments>(arguments)...)});
    blocks_.push_back({std::move(made), 1});
    ++count_;
    return blocks_.back().items[0];
  }

  /// `item` must have come from here and not been released since.
  void release(T* item) noexcept {
    assert(owns(item) && available() < count_);
    free_.push_back(item);
  }

  size_t available() const { return free_.size(); }
  size_t capacity() const { return count_; }

  bool owns(const T* item) const {
    const std::less<const T*> before;
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
      return !before(item, block.items.get()) && before(item, block.items.get() + block.count);
    });
  }

 private:
  struct Block {
    std::unique_ptr<T[]> items;
    size_t count = 0;
  };

  std::vector<Block> blocks_;
  std::vector<T*> free_;  // has room for all
  size_t count_ = 0;
};

}  // namespace diwarp
