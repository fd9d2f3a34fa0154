// SPDX-License-Identifier: Apache-2.0
#pragma once

// DIWARP_ADDRESS_SANITIZER: this is built with it. GCC says so by a macro, Clang by a feature.
#if defined(__SANITIZE_ADDRESS__)
#define DIWARP_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DIWARP_ADDRESS_SANITIZER
#endif
#endif

namespace diwarp::test {

/// How many of `rounds` random inputs are tried: the first tenth of them with AddressSanitizer,
/// which takes ten times as long. There the fuzzers go further.
constexpr int random_rounds(int rounds) {
#ifdef DIWARP_ADDRESS_SANITIZER
  return rounds / 10;
#else
  return rounds;
#endif
}

/// Of a depth to which every combination is tried: three quarters with AddressSanitizer. The
/// explorer finds its faults in release; here it is the memory errors that count.
constexpr unsigned exhaustive_depth(unsigned depth) {
#ifdef DIWARP_ADDRESS_SANITIZER
  return depth - depth / 4;
#else
  return depth;
#endif
}

}  // namespace diwarp::test
