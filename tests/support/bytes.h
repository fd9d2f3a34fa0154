// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace diwarp::test {

/// The bytes that pairs of hexadecimal digits name; blanks between them mean nothing.
inline std::vector<std::byte> hex(std::string_view text) {
  const auto digit = [](char c) -> uint8_t {
    if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
    throw std::invalid_argument("not a hexadecimal digit");
  };
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    bytes.push_back(static_cast<std::byte>(digit(text.at(i)) << 4 | digit(text.at(i + 1))));
    ++i;
  }
  return bytes;
}

inline std::vector<std::byte> copy(ConstBytes bytes) { return {bytes.begin(), bytes.end()}; }

/// The bytes of these characters, where they stand.
inline ConstBytes bytes_of(std::string_view characters) {
  return std::as_bytes(std::span(characters));
}

/// A copy of them.
inline std::vector<std::byte> text(std::string_view characters) {
  return copy(bytes_of(characters));
}

inline std::string text_of(ConstBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace diwarp::test
