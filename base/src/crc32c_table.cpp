// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <cstring>

#include "base/crc32c.h"
#include "crc32c_powers.h"

namespace diwarp {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr uint32_t shift_byte(uint32_t state) {
  for (int bit = 0; bit < 8; ++bit)
    state = (state >> 1) ^ ((state & 1) != 0 ? kCrc32cPolynomial : 0);
  return state;
}

// tables[k][b] is the effect of byte b followed by k zero bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) tables[0][byte] = shift_byte(byte);
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = tables[0][before & 0xFF] ^ (before >> 8);
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

uint64_t load_little_endian(const std::byte* source) {
  uint64_t value;
  std::memcpy(&value, source, sizeof value);
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

uint32_t eight_bytes(uint32_t state, const std::byte* source) {
  const uint64_t mixed = load_little_endian(source) ^ state;
  uint32_t result = 0;
  for (size_t i = 0; i < 8; ++i) result ^= kTables[7 - i][(mixed >> (8 * i)) & 0xFF];
  return result;
}

}  // namespace

uint32_t crc32c_table_update(uint32_t state, ConstBytes data) {
  for (; data.size() >= 8; data = data.subspan(8)) state = eight_bytes(state, data.data());
  for (std::byte byte : data) {
    state = kTables[0][(state ^ static_cast<uint32_t>(byte)) & 0xFF] ^ (state >> 8);
  }
  return state;
}

}  // namespace diwarp
