// SPDX-License-Identifier: Apache-2.0
#include "contents.h"

#include <algorithm>

namespace network {

namespace {

/// The eight bytes at 8 * index (SplitMix64).
uint64_t word_at(Contents contents, uint64_t index) {
  uint64_t mixed = (index * 2 + static_cast<uint64_t>(contents)) * 0x9E3779B97F4A7C15u;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
  return mixed ^ (mixed >> 31);
}

/// Calls `visit(place in memory, byte)` until it says false.
template <typename Visit>
void for_each_byte(size_t length, Contents contents, uint64_t offset, Visit visit) {
  uint64_t word = 0;
  for (size_t i = 0; i < length; ++i) {
    const uint64_t at = offset + i;
    if (i == 0 || at % 8 == 0) word = word_at(contents, at / 8);
    if (!visit(i, static_cast<std::byte>(word >> (at % 8 * 8)))) return;
  }
}

}  // namespace

void fill(std::span<std::byte> memory, Contents contents, uint64_t offset) {
  for_each_byte(memory.size(), contents, offset, [memory](size_t i, std::byte value) {
    memory[i] = value;
    return true;
  });
}

std::optional<uint64_t> first_wrong(std::span<const std::byte> memory, Contents contents,
                                    uint64_t offset) {
  std::optional<uint64_t> wrong;
  for_each_byte(memory.size(), contents, offset, [&](size_t i, std::byte value) {
    if (memory[i] != value) wrong = offset + i;
    return !wrong;
  });
  return wrong;
}

std::optional<uint64_t> first_wrong(std::span<const std::byte> memory, Contents contents,
                                    std::span<const Range> parts) {
  for (const Range& part : parts) {
    const auto wrong = first_wrong(memory.subspan(part.offset, part.length), contents, part.offset);
    if (wrong) return wrong;
  }
  return std::nullopt;
}

std::vector<Range> complement(std::vector<Range> parts, uint64_t length) {
  std::sort(parts.begin(), parts.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  std::vector<Range> gaps;
  uint64_t end = 0;
  for (const Range& part : parts) {
    if (part.offset > end) gaps.push_back({end, part.offset - end});
    end = std::max(end, part.offset + part.length);
  }
  if (end < length) gaps.push_back({end, length - end});
  return gaps;
}

}  // namespace network
