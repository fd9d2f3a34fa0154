// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

namespace diwarp::fuzz {

/// The bytes of one fuzzer input, which a fuzzer reads its decisions from. Behind the end there are
/// zeros without end, so every input is a whole one.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) {}

  /// Whether bytes are left.
  bool more() const { return !left_.empty(); }
  size_t size() const { return left_.size(); }

  uint8_t u8() {
    if (left_.empty()) return 0;
    const uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  uint16_t u16() { return static_cast<uint16_t>(number(2)); }
  uint32_t u32() { return static_cast<uint32_t>(number(4)); }
  uint64_t u64() { return number(8); }
  /// 0 to `count` - 1; `count` is at least 1.
  uint32_t below(uint32_t count) { return (count <= 256 ? u8() : u32()) % count; }
  bool flag() { return (u8() & 1) != 0; }

  /// The next `count` bytes; fewer at the end.
  std::vector<std::byte> bytes(size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    const auto view = std::as_bytes(taken);
    return {view.begin(), view.end()};
  }
  /// All that are left.
  std::vector<std::byte> rest() { return bytes(left_.size()); }

 private:
  uint64_t number(size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value = value << 8 | u8();
    return value;
  }

  std::span<const uint8_t> left_;
};

/// Ends the program: a demand is not met.
[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "VIOLATION: %s\n", message.c_str());
  std::abort();
}

inline void require(bool holds, const char* message) {
  if (!holds) fail(message);
}

}  // namespace diwarp::fuzz
