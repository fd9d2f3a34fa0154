// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/memory_budget.h"

namespace diwarp {

/// An array that grows within a budget and never throws. The first `kInline` elements need no
/// memory; beyond them it doubles, and keeps what it has until it is cleared or destroyed. The
/// budget, if there is one, must outlive it.
template <class T, size_t kInline>
class BudgetedArray {
  static_assert(std::is_trivially_copyable_v<T> && kInline > 0);

 public:
  explicit BudgetedArray(MemoryBudget* budget = nullptr) : budget_(budget) {}
  BudgetedArray(BudgetedArray&& other) noexcept { swap(other); }
  BudgetedArray& operator=(BudgetedArray&& other) noexcept {
    BudgetedArray taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~BudgetedArray() { clear(); }

  T* begin() { return heap_ ? heap_.get() : inline_.data(); }
  const T* begin() const { return heap_ ? heap_.get() : inline_.data(); }
  T* end() { return begin() + size_; }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t position) { return begin()[position]; }
  const T& operator[](size_t position) const { return begin()[position]; }
  T& front() { return *begin(); }
  T& back() { return *(end() - 1); }
  const T& back() const { return *(end() - 1); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// Puts `value` before the element at `position`. False, and nothing changed, where neither the
  /// budget nor the system has memory for it.
  bool insert(size_t position, const T& value) noexcept {
    assert(position <= size_);
    if (size_ == capacity_ && !grow()) return false;
    std::move_backward(begin() + position, end(), end() + 1);
    begin()[position] = value;
    ++size_;
    return true;
  }
  bool push_back(const T& value) noexcept { return insert(size_, value); }

  void erase(size_t position) noexcept {
    assert(position < size_);
    std::move(begin() + position + 1, end(), begin() + position);
    --size_;
  }
  void pop_back() noexcept { --size_; }

  /// Gives all memory back.
  void clear() noexcept {
    if (heap_ && budget_ != nullptr) budget_->give_back(capacity_ * sizeof(T));
    heap_.reset();
    capacity_ = kInline;
    size_ = 0;
  }

 private:
  bool grow() noexcept {
    const size_t held = heap_ ? capacity_ * sizeof(T) : 0;
    const size_t wanted = 2 * size_t{capacity_};
    // Both exist while the elements move.
    if (budget_ != nullptr && !budget_->take(wanted * sizeof(T))) return false;
    std::unique_ptr<T[]> larger(new (std::nothrow) T[wanted]);
    if (!larger) {
      if (budget_ != nullptr) budget_->give_back(wanted * sizeof(T));
      return false;
    }
    std::copy(begin(), end(), larger.get());
    if (budget_ != nullptr) budget_->give_back(held);
    heap_ = std::move(larger);
    capacity_ = static_cast<uint32_t>(wanted);
    return true;
  }
  void swap(BudgetedArray& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(heap_, other.heap_);
    std::swap(inline_, other.inline_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  MemoryBudget* budget_ = nullptr;
  std::unique_ptr<T[]> heap_;        // null: the elements are in inline_
  std::array<T, kInline> inline_{};  // the first size_ are in use
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
};

}  // namespace diwarp
