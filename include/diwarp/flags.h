// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace diwarp {

/// Whether an enumeration is a set of flags, one bit each: then it has |, & and has().
template <class Enum>
inline constexpr bool kIsFlags = false;

template <class Enum>
concept Flags = std::is_enum_v<Enum> && kIsFlags<Enum>;

template <Flags Enum>
constexpr Enum operator|(Enum a, Enum b) {
  using Bits = std::underlying_type_t<Enum>;
  return static_cast<Enum>(static_cast<Bits>(a) | static_cast<Bits>(b));
}

template <Flags Enum>
constexpr Enum operator&(Enum a, Enum b) {
  using Bits = std::underlying_type_t<Enum>;
  return static_cast<Enum>(static_cast<Bits>(a) & static_cast<Bits>(b));
}

/// True if `flags` has every flag of `wanted`.
template <Flags Enum>
constexpr bool has(Enum flags, Enum wanted) {
  return (flags & wanted) == wanted;
}

}  // namespace diwarp
