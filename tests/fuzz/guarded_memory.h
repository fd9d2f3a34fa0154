// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fuzz/input.h"
#include "fuzz/pattern.h"

namespace diwarp::fuzz {

/// Memory to register, full of a pattern, which goes on on both sides of it. AddressSanitizer does
/// not see a write that misses the memory and hits these guards; check_guards() does.
class GuardedMemory {
 public:
  GuardedMemory(size_t size, uint32_t seed) : seed_(seed), all_(pattern(seed, size + 2 * kGuard)) {}

  std::span<std::byte> bytes() { return std::span(all_).subspan(kGuard, size()); }
  std::span<const std::byte> bytes() const { return std::span(all_).subspan(kGuard, size()); }
  size_t size() const { return all_.size() - 2 * kGuard; }

  /// Whether these are the bytes that stood from `at` on at first.
  bool matches(std::span<const std::byte> those, size_t at) const {
    return is_pattern(those, seed_, kGuard + at);
  }
  /// Whether `count` bytes from `at` on are as they were at first.
  bool unchanged(size_t at, size_t count) const { return matches(bytes().subspan(at, count), at); }

  void check_guards() const {
    require(is_pattern(std::span(all_).first(kGuard), seed_), "memory before a region was written");
    require(is_pattern(std::span(all_).last(kGuard), seed_, all_.size() - kGuard),
            "memory behind a region was written");
  }
  void check_unchanged(const char* message) const {
    check_guards();
    require(unchanged(0, size()), message);
  }

 private:
  static constexpr size_t kGuard = 64;

  uint32_t seed_;
  std::vector<std::byte> all_;
};

}  // namespace diwarp::fuzz
