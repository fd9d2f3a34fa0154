// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace diwarp {

/// The polynomial 0x1EDC6F41 with its bits reversed: CRC32C shifts the low bit out first.
inline constexpr uint32_t kCrc32cPolynomial = 0x82F63B78u;

/// x^exponent modulo the polynomial, bits reversed: bit i is the coefficient of x^(31 - i).
constexpr uint32_t crc32c_power(size_t exponent) {
  uint32_t power = uint32_t{1} << 31;
  for (; exponent != 0; --exponent)
    power = (power >> 1) ^ ((power & 1) != 0 ? kCrc32cPolynomial : 0);
  return power;
}

/// The factor of a carry-less multiplication that moves 64 bits (as they stand in memory) by
/// `bits` towards the beginning of the data. The product of reversed operands has one x too many.
constexpr uint64_t crc32c_multiplier(size_t bits) { return uint64_t{crc32c_power(bits - 1)} << 32; }

}  // namespace diwarp
