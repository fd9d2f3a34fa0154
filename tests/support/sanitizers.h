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
