// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/cache_line.h"

namespace diwarp {

/// A bounded lock-free queue between one producer and one consumer thread.
template <class T>
class SpscRing {
 public:
  explicit SpscRing(size_t capacity)
      : slots_(std::make_unique<T[]>(std::bit_ceil(capacity))),
        mask_(std::bit_ceil(capacity) - 1),
        capacity_(capacity) {}

  SpscRing(const SpscRing&) = delete;
  SpscRing& operator=(const SpscRing&) = delete;

  size_t capacity() const { return capacity_; }

  /// Exact for the producer and the consumer in their own direction: the producer may see more
  /// than there is, the consumer less.
  size_t size() const {
    const uint64_t head = head_.load(std::memory_order_acquire);
    return static_cast<size_t>(tail_.load(std::memory_order_acquire) - head);
  }

  /// How many elements were ever pushed. Exact for the producer, at most too few for others.
  uint64_t pushed() const { return tail_.load(std::memory_order_acquire); }

  /// Producer. The place of the next element, whose value is that of an element popped before, or
  /// none; null when full. publish() makes it an element.
  T* free_place() {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_seen_ >= capacity_) {
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail - head_seen_ >= capacity_) return nullptr;
    }
    return &slots_[tail & mask_];
  }
  /// Producer. Only after free_place() gave a place. Returns how many were pushed before it, ever.
  uint64_t publish() {
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    tail_.store(tail + 1, std::memory_order_release);
    return tail;
  }

  /// Producer. False, and nothing changed, when full.
  bool try_push(const T& value) { return try_push(T(value)); }
  bool try_push(T&& value) {
    T* const place = free_place();
    if (place == nullptr) return false;
    *place = std::move(value);
    publish();
    return true;
  }

  /// Consumer. The oldest element, or nullptr when empty; valid until pop().
  T* front() {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);
      if (head == tail_seen_) return nullptr;
    }
    return &slots_[head & mask_];
  }

  /// Consumer. Moves the oldest element out, whose place must hold nothing after that; false when
  /// there is none.
  bool try_pop(T& into) {
    T* oldest = front();
    if (oldest == nullptr) return false;
    into = std::move(*oldest);
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    return true;
  }

  /// The same of as many as there are, and `into` has room for; returns how many.
  size_t pop(std::span<T> into) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    tail_seen_ = tail_.load(std::memory_order_acquire);
    const size_t count = std::min<size_t>(tail_seen_ - head, into.size());
    for (size_t i = 0; i < count; ++i) into[i] = std::move(slots_[(head + i) & mask_]);
    head_.store(head + count, std::memory_order_release);
    return count;
  }

  /// Consumer. Only after front() gave an element.
  void pop() {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    if constexpr (!std::is_trivially_destructible_v<T>) slots_[head & mask_] = T{};
    head_.store(head + 1, std::memory_order_release);
  }

 private:
  std::unique_ptr<T[]> slots_;
  uint64_t mask_;
  uint64_t capacity_;

  // Both count up for ever; a slot is the count masked.
  // Producer: writes the slot, then publishes it with tail_ (release); the consumer reads tail_
  // (acquire) before the slot. tail_ and head_seen_ are written by the producer alone.
  alignas(kCacheLine) std::atomic<uint64_t> tail_{0};
  uint64_t head_seen_ = 0;
  // Consumer: is done with the slot, then frees it with head_ (release); the producer reads head_
  // (acquire) before it reuses the slot. head_ and tail_seen_ are written by the consumer alone.
  alignas(kCacheLine) std::atomic<uint64_t> head_{0};
  uint64_t tail_seen_ = 0;
};

}  // namespace diwarp
