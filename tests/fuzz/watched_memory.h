// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/input.h"

namespace diwarp::fuzz {

/// Memory with guards on both sides, and a copy of what it is known to hold: bytes written since
/// are seen. AddressSanitizer does not see a write that misses a region and hits a guard.
class WatchedMemory {
 public:
  WatchedMemory(size_t size, uint8_t seed) : all_(size + 2 * kGuard) {
    for (size_t i = 0; i < all_.size(); ++i)
      all_[i] = static_cast<std::byte>(seed + i * 7 + i / 31);
    known_ = all_;
  }

  std::span<std::byte> bytes() { return std::span(all_).subspan(kGuard, size()); }
  size_t size() const { return all_.size() - 2 * kGuard; }

  /// The bytes from `at` on are known from now on.
  void accept(size_t at, size_t count) {
    std::copy_n(all_.begin() + index(at), count, known_.begin() + index(at));
  }
  void accept() { accept(0, size()); }
  void check(size_t at, size_t count, const char* message) const {
    require(std::equal(all_.begin() + index(at), all_.begin() + index(at + count),
                       known_.begin() + index(at)),
            message);
  }
  void check(const char* message) const { check(0, size(), message); }
  void check_guards() const {
    require(std::equal(all_.begin(), all_.begin() + index(0), known_.begin()),
            "Memory before a region was written");
    require(std::equal(all_.begin() + index(size()), all_.end(), known_.begin() + index(size())),
            "Memory after a region was written");
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr ptrdiff_t index(size_t at) { return static_cast<ptrdiff_t>(kGuard + at); }

  std::vector<std::byte> all_;
  std::vector<std::byte> known_;
};

}  // namespace diwarp::fuzz
