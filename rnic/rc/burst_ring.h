// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace diwarp::rnic {

/// FPDUs that one system call carries at most: with Ethernet's segments about 46 KB.
inline constexpr size_t kBurstFpdus = 32;

/// A ring of entries in memory that its owner gives it and takes away: most queue pairs are idle
/// and have none. Entries are not destroyed or made anew.
template <class T>
class BurstRing {
 public:
  /// A power of two of entries, into which those there are moved: at least as many. None while
  /// there is no entry: none is needed.
  void use(std::span<T> memory) {
    for (size_t i = 0; i < count_; ++i) memory[i] = std::move(at(i));
    memory_ = memory.data();
    mask_ = static_cast<uint32_t>(memory.size() - 1);
    first_ = 0;
  }
  void clear() { first_ = count_ = 0; }

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  /// From the oldest on.
  T& at(size_t index) { return memory_[(first_ + index) & mask_]; }
  const T& at(size_t index) const { return memory_[(first_ + index) & mask_]; }
  T& back() { return at(count_ - 1); }

  /// The entry that push() adds.
  T& next() { return at(count_); }
  void push() { ++count_; }
  /// Removes the oldest.
  void pop() {
    first_ = (first_ + 1) & mask_;
    --count_;
  }

 private:
  T* memory_ = nullptr;
  uint32_t mask_ = 0;  // entries of the memory, less one
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace diwarp::rnic
