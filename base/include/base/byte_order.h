// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace diwarp {

/// Host to network order and back (the same exchange of bytes).
template <std::unsigned_integral T>
constexpr T to_big_endian(T value) {
  if constexpr (std::endian::native == std::endian::big || sizeof(T) == 1) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bswap32(value);
  } else {
    static_assert(sizeof(T) == 8);
    return __builtin_bswap64(value);
  }
}

/// Reads sizeof(T) bytes in network order; `source` needs no alignment.
template <std::unsigned_integral T>
T load_be(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return to_big_endian(value);
}

/// Writes sizeof(T) bytes in network order; `target` needs no alignment.
template <std::unsigned_integral T>
void store_be(std::byte* target, T value) {
  const T stored = to_big_endian(value);
  std::memcpy(target, &stored, sizeof stored);
}

/// A field of a wire header: bytes in network order, without alignment. It becomes a host value
/// only through get(), so it cannot be used in arithmetic by mistake.
template <std::unsigned_integral T>
class BigEndian {
 public:
  constexpr BigEndian() = default;
  // Implicit, so that headers can be written as aggregates of host values.
  constexpr BigEndian(T value)
      : bytes_(std::bit_cast<std::array<std::byte, sizeof(T)>>(to_big_endian(value))) {}

  constexpr T get() const { return to_big_endian(std::bit_cast<T>(bytes_)); }

  friend constexpr bool operator==(const BigEndian&, const BigEndian&) = default;

 private:
  std::array<std::byte, sizeof(T)> bytes_{};
};

using Be16 = BigEndian<uint16_t>;
using Be32 = BigEndian<uint32_t>;
using Be64 = BigEndian<uint64_t>;

static_assert(sizeof(Be16) == 2 && alignof(Be16) == 1);
static_assert(sizeof(Be32) == 4 && alignof(Be32) == 1);
static_assert(sizeof(Be64) == 8 && alignof(Be64) == 1);

}  // namespace diwarp
