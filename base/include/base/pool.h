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
    free_.reserve(count);
    auto block = std::make_unique<Block>();
    block->items = std::make_unique<T[]>(count);
    block->count = count;
    add_block(std::move(block));
    // The lowest address is given out first; after that the most recently released, still in cache.
    for (size_t i = 0; i < count; ++i) free_.push_back(&blocks_->items[count - 1 - i]);
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    while (blocks_) blocks_ = std::move(blocks_->next);  // one by one: the list may be long
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
    // release() allocates nothing, as there is room for all.
    if (free_.capacity() == count_) free_.reserve(std::max<size_t>(8, 2 * count_));
    auto block = std::make_unique<Block>();
    block->items.reset(new T[1]{T(std::forward<Arguments>(arguments)...)});
    block->count = 1;
    add_block(std::move(block));
    return blocks_->items[0];
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
    for (const Block* block = blocks_.get(); block != nullptr; block = block->next.get())
      if (!before(item, block->items.get()) && before(item, block->items.get() + block->count))
        return true;
    return false;
  }

 private:
  struct Block {
    std::unique_ptr<T[]> items;
    size_t count = 0;
    std::unique_ptr<Block> next;
  };

  void add_block(std::unique_ptr<Block> block) noexcept {
    count_ += block->count;
    block->next = std::move(blocks_);
    blocks_ = std::move(block);
  }

  std::unique_ptr<Block> blocks_;  // the latest one first
  std::vector<T*> free_;           // has room for all
  size_t count_ = 0;
};

}  // namespace diwarp
