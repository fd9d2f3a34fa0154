// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace diwarp::rnic {

/// FPDUs that one system call carries at most: with Ethernet's segments about 46 KB.
inline constexpr size_t kBurstFpdus = 32;

/// A ring of as many entries as a burst has FPDUs, in memory that its owner gives it and takes
/// away: most queue pairs are idle and have none. Entries are not destroyed or made anew.
template <class T>
class BurstRing {
 public:
  using Memory = std::array<T, kBurstFpdus>;

  /// Null while there is no entry: none is needed.
  void use(Memory* memory) { memory_ = memory; }
  void clear() { first_ = count_ = 0; }

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  /// From the oldest on.
  T& at(size_t index) { return (*memory_)[(first_ + index) % kBurstFpdus]; }
  const T& at(size_t index) const { return (*memory_)[(first_ + index) % kBurstFpdus]; }
  T& back() { return at(count_ - 1); }

  /// The entry that push() adds.
  T& next() { return at(count_); }
  void push() { ++count_; }
  /// Removes the oldest.
  void pop() {
    first_ = (first_ + 1) % uint32_t{kBurstFpdus};
    --count_;
  }

 private:
  Memory* memory_ = nullptr;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace diwarp::rnic
