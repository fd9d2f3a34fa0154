// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>

namespace diwarp {

/// Bytes that several owners share, so that together they stay within one bound. For one thread.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t bytes) : left_(bytes) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  /// False, and nothing is taken, if so many are not left.
  bool take(size_t bytes) noexcept {
    if (bytes > left_) return false;
    left_ -= bytes;
    used_ += bytes;
    return true;
  }
  void give_back(size_t bytes) noexcept {
    assert(bytes <= used_);
    left_ += bytes;
    used_ -= bytes;
  }
  size_t used() const { return used_; }

 private:
  size_t left_;
  size_t used_ = 0;
};

}  // namespace diwarp
