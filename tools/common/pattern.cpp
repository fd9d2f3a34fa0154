// SPDX-License-Identifier: Apache-2.0
#include "common/pattern.h"

#include <algorithm>
#include <cstring>

namespace diwarp::tools {
namespace {

constexpr size_t kStamp = 4;

size_t stamp_length(size_t size) { return std::min(size, kStamp); }

/// The eight bytes at position `index` (in words) of a message.
class Words {
 public:
  Words(size_t size, uint64_t number, Way way)
      : seed_((size * 0x9E3779B97F4A7C15u) ^ (number * 0xC2B2AE3D27D4EB4Fu) ^
              static_cast<uint64_t>(way)) {}

  uint64_t operator()(size_t index) const {
    uint64_t word = seed_ + (index + 1) * 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9u;
    return word ^ (word >> 32);
  }

 private:
  uint64_t seed_;
};

/// Calls visit(offset, bytes, count) for each piece of up to 8 bytes after the stamp.
template <class Visit>
void for_each_piece(size_t size, uint64_t number, Way way, Visit visit) {
  const Words words(size, number, way);
  size_t index = 0;
  for (size_t at = stamp_length(size); at < size; at += sizeof(uint64_t), ++index) {
    const uint64_t word = words(index);
    if (!visit(at, &word, std::min(sizeof word, size - at))) return;
  }
}

size_t first_of(const std::byte* message, const void* expected, size_t count) {
  const auto* bytes = static_cast<const std::byte*>(expected);
  return static_cast<size_t>(std::mismatch(message, message + count, bytes).first - message);
}

}  // namespace

void stamp(std::span<std::byte> message, uint64_t number) {
  for (size_t i = 0; i < stamp_length(message.size()); ++i) {
    message[i] = static_cast<std::byte>(number >> (8 * i));
  }
}

void fill(std::span<std::byte> message, uint64_t number, Way way) {
  stamp(message, number);
  for_each_piece(message.size(), number, way, [&](size_t at, const void* bytes, size_t count) {
    std::memcpy(message.data() + at, bytes, count);
    return true;
  });
}

void write_message(std::span<std::byte> message, uint64_t number, Way way, bool verified) {
  if (verified) {
    fill(message, number, way);
  } else {
    stamp(message, number);
  }
}

std::optional<uint64_t> number_of(std::span<const std::byte> message, uint64_t expected) {
  if (message.empty()) return std::nullopt;
  const size_t length = stamp_length(message.size());
  uint64_t low = 0;
  for (size_t i = 0; i < length; ++i) low |= std::to_integer<uint64_t>(message[i]) << (8 * i);
  const uint64_t modulus = uint64_t{1} << (8 * length);
  const uint64_t ahead = (low - expected) & (modulus - 1);
  // Ahead by less than half of the modulus, else behind; never before number 0.
  if (ahead < modulus / 2 || expected + ahead < modulus) return expected + ahead;
  return expected + ahead - modulus;
}

std::optional<size_t> first_difference(std::span<const std::byte> message, uint64_t number,
                                       Way way) {
  for (size_t i = 0; i < stamp_length(message.size()); ++i) {
    if (message[i] != static_cast<std::byte>(number >> (8 * i))) return i;
  }
  std::optional<size_t> found;
  for_each_piece(message.size(), number, way, [&](size_t at, const void* bytes, size_t count) {
    if (std::memcmp(message.data() + at, bytes, count) == 0) return true;
    found = at + first_of(message.data() + at, bytes, count);
    return false;
  });
  return found;
}

}  // namespace diwarp::tools
