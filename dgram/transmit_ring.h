// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

/// What is known of one sequenced datagram that was sent.
struct TxSlot {
  enum Flag : uint8_t {
    came = 1,          ///< acknowledged, by the map or for good
    lost = 2,          ///< to be sent again
    repeated = 4,      ///< sent more than once
    urgent = 8,        ///< to be sent again whatever the congestion window says
    given_up = 16,     ///< a skip stands for it
    probing = 32,      ///< urgent, because the peer was silent
    app_limited = 64,  ///< see DeliveryRate
  };

  TxTag tag;
  uint8_t flags = 0;
  uint32_t order = 0;  ///< of all transmissions
  Time sent{};
  // Of DeliveryRate, when it was sent.
  uint32_t delivered = 0;
  uint32_t delivered_at = 0;
  uint32_t first_sent = 0;
  // Of the TransmitList that it is on: the low bits of its neighbours' numbers.
  uint16_t previous = 0;
  uint16_t next = 0;

  /// Whether it has any of these flags.
  bool has(uint8_t any) const { return (flags & any) != 0; }
};
static_assert(sizeof(TxSlot) <= 56, "docs/limits.md says how much memory a datagram takes");

/// Memory for the slots of datagrams under way: a power of two of them, each at its sequence number
/// modulo the capacity. Its owner knows which numbers are in use. Beyond the first kUncounted
/// slots, memory counts to a budget, which must outlive the ring.
class TransmitRing {
 public:
  /// Slots that need no memory of the budget.
  static constexpr uint32_t kUncounted = 16;

  TransmitRing() = default;
  TransmitRing(TransmitRing&& other) noexcept { swap(other); }
  TransmitRing& operator=(TransmitRing&& other) noexcept;
  ~TransmitRing();

  uint32_t capacity() const { return capacity_; }
  /// There must be a capacity.
  TxSlot& at(uint64_t sequence) const { return slots_[sequence & (capacity_ - 1)]; }

  // --- Which of them came, as bits, so that a map is compared by the word.

  /// Those of 64 numbers from `sequence` on, the first in the highest bit.
  uint64_t came(uint64_t sequence) const {
    const uint64_t shift = sequence % 64;
    const uint64_t high = came_[word_of(sequence)] << shift;
    return shift == 0 ? high : high | came_[word_of(sequence + 63)] >> (64 - shift);
  }
  void set_came(uint64_t sequence, bool came) {
    const uint64_t bit = uint64_t{1} << (63 - sequence % 64);
    uint64_t& word = came_[word_of(sequence)];
    word = came ? word | bit : word & ~bit;
  }

  /// Makes place for `count` slots from number `first` on, of which those before `end` are in use
  /// and stay what they are. False, and nothing changes, where `budget` (if there is one) or the
  /// system has no memory for that.
  bool reserve(uint64_t first, uint64_t end, uint64_t count, MemoryBudget* budget) {
    return count <= capacity_ || grow(first, end, count, budget);
  }

 private:
  static size_t words(uint32_t capacity) { return (capacity + 63) / 64; }
  static size_t counted(uint32_t capacity);
  size_t word_of(uint64_t sequence) const { return sequence / 64 & (words(capacity_) - 1); }
  bool grow(uint64_t first, uint64_t end, uint64_t count, MemoryBudget* budget);
  void swap(TransmitRing& other) noexcept;

  std::unique_ptr<TxSlot[]> slots_;
  std::unique_ptr<uint64_t[]> came_;
  uint32_t capacity_ = 0;
  MemoryBudget* budget_ = nullptr;
};

}  // namespace diwarp::dgram
