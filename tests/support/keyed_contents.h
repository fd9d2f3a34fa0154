// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

/// Contents of memory that can be computed from any byte on. Those of one key differ from those of
/// another, and those of one place from those of the next, so that what was placed wrongly shows.
/// They know nothing of the library: programs that link it as users do have them, too.
namespace diwarp::test {

/// SplitMix64's output function. Makes a key of numbers, too.
constexpr uint64_t mix(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
  return word ^ (word >> 31);
}

/// The eight bytes at 8 * index.
constexpr uint64_t word_at(uint64_t key, uint64_t index) {
  return mix(key + index * 0x9E3779B97F4A7C15u);
}

/// Calls visit(place in memory, bytes, count) for each piece of a word until it says false.
template <class Visit>
void for_each_piece(size_t length, uint64_t key, uint64_t offset, Visit visit) {
  for (size_t at = 0; at < length;) {
    const uint64_t word = word_at(key, (offset + at) / 8);
    const size_t skip = (offset + at) % 8;
    const size_t count = std::min(sizeof word - skip, length - at);
    if (!visit(at, reinterpret_cast<const std::byte*>(&word) + skip, count)) return;
    at += count;
  }
}

/// Fills memory that begins at byte `offset` of the contents.
inline void fill(std::span<std::byte> memory, uint64_t key, uint64_t offset = 0) {
  for_each_piece(memory.size(), key, offset, [&](size_t at, const std::byte* bytes, size_t count) {
    std::memcpy(memory.data() + at, bytes, count);
    return true;
  });
}

/// Where in memory the first byte is that is not what fill() writes; nothing if all are.
inline std::optional<size_t> first_wrong(std::span<const std::byte> memory, uint64_t key,
                                         uint64_t offset = 0) {
  std::optional<size_t> wrong;
  for_each_piece(memory.size(), key, offset, [&](size_t at, const std::byte* bytes, size_t count) {
    if (std::memcmp(memory.data() + at, bytes, count) == 0) return true;
    while (memory[at] == *bytes) ++at, ++bytes;
    wrong = at;
    return false;
  });
  return wrong;
}

/// The byte at `offset` of the contents.
constexpr std::byte byte_at(uint64_t key, uint64_t offset) {
  return static_cast<std::byte>(word_at(key, offset / 8) >> (offset % 8 * 8));
}

}  // namespace diwarp::test
