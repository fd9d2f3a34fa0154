// SPDX-License-Identifier: Apache-2.0
#include "fuzz/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/random.h"

namespace diwarp::fuzz {
namespace {

constexpr size_t kPeriod = 4093;  // a prime: no message or region has it as its length
constexpr uint64_t kSeedStep = 577;

std::array<std::byte, kPeriod> make_table() {
  std::array<std::byte, kPeriod> table{};
  Random random(1);
  for (std::byte& byte : table) byte = static_cast<std::byte>(random.next());
  return table;
}

/// The longest run of the pattern from byte `from` on that lies in one piece.
std::span<const std::byte> run(uint32_t seed, uint64_t from, size_t most) {
  static const std::array<std::byte, kPeriod> table = make_table();
  const size_t at = (from % kPeriod + seed * kSeedStep) % kPeriod;
  return std::span(table).subspan(at, std::min(most, kPeriod - at));
}

}  // namespace

std::vector<std::byte> pattern(uint32_t seed, size_t size, uint64_t from) {
  std::vector<std::byte> bytes;
  bytes.reserve(size);
  while (bytes.size() < size) {
    const auto piece = run(seed, from + bytes.size(), size - bytes.size());
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  }
  return bytes;
}

bool is_pattern(std::span<const std::byte> bytes, uint32_t seed, uint64_t from) {
  while (!bytes.empty()) {
    const auto piece = run(seed, from, bytes.size());
    if (std::memcmp(piece.data(), bytes.data(), piece.size()) != 0) return false;
    bytes = bytes.subspan(piece.size());
    from += piece.size();
  }
  return true;
}

}  // namespace diwarp::fuzz
