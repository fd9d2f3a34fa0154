// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace diwarp::test {

inline ConstBytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

inline std::string text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// `size` characters that tell where they stand and, by `seed`, to what they belong.
inline std::string pattern(size_t size, size_t seed = 0) {
  std::string result(size, '\0');
  for (size_t i = 0; i < size; ++i) result[i] = static_cast<char>((i * 31 + seed * 101 + 7) & 0xFF);
  return result;
}

}  // namespace diwarp::test
