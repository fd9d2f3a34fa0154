// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace diwarp {

/// A double-ended queue of fixed capacity for one thread. All memory is taken at construction.
template <class T>
class Ring {
 public:
  explicit Ring(size_t capacity) : slots_(std::make_unique<T[]>(capacity)), capacity_(capacity) {}

  bool empty() const { return size_ == 0; }
  bool full() const { return size_ == capacity_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }

  /// False, and nothing changed, when full.
  bool push_back(T value) {
    if (full()) return false;
    slots_[index(size_)] = std::move(value);
    ++size_;
    return true;
  }

  /// False, and nothing changed, when full.
  bool push_front(T value) {
    if (full()) return false;
    head_ = head_ == 0 ? capacity_ - 1 : head_ - 1;
    slots_[head_] = std::move(value);
    ++size_;
    return true;
  }

  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }
  const T& back() const { return (*this)[size_ - 1]; }

  /// The element `position` steps after the front.
  T& operator[](size_t position) {
    assert(position < size_);
    return slots_[index(position)];
  }
  const T& operator[](size_t position) const {
    assert(position < size_);
    return slots_[index(position)];
  }

  void pop_front() {
    assert(!empty());
    if constexpr (!std::is_trivially_destructible_v<T>) slots_[head_] = T{};
    head_ = index(1);
    --size_;
  }

  void clear() {
    while (!empty()) pop_front();
  }

 private:
  size_t index(size_t position) const {
    const size_t sum = head_ + position;
    return sum < capacity_ ? sum : sum - capacity_;
  }

  std::unique_ptr<T[]> slots_;
  size_t capacity_;
  size_t head_ = 0;
  size_t size_ = 0;
};

/// For rings that are made when they are first needed; null where there is no memory now.
template <class T>
std::unique_ptr<Ring<T>> try_make_ring(size_t capacity) noexcept {
  try {
    return std::make_unique<Ring<T>>(capacity);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace diwarp
