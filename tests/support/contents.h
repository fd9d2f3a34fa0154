// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/bytes.h"

/// The contents of tests' messages. Those that can be computed from any byte on are in
/// keyed_contents.h.
namespace diwarp::test {

inline std::vector<std::byte> random_bytes(Random& random, size_t size) {
  std::vector<std::byte> bytes(size);
  size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const uint64_t word = random.next();
    std::memcpy(&bytes[at], &word, 8);
  }
  for (; at < size; ++at) bytes[at] = static_cast<std::byte>(random.next());
  return bytes;
}

/// Bytes that differ from place to place, and from seed to seed.
inline std::vector<std::byte> pattern(size_t size, uint64_t seed) {
  Random random(seed);
  return random_bytes(random, size);
}

/// The same as characters.
inline std::string text_pattern(size_t size, uint64_t seed = 0) {
  return text_of(pattern(size, seed));
}

}  // namespace diwarp::test
