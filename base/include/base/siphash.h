// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace diwarp {

/// The two halves of a key of 128 bits, the first from its first 8 bytes in little-endian order.
struct SipKey {
  uint64_t first = 0;
  uint64_t second = 0;
};

/// SipHash-2-4 (Aumasson, Bernstein): 64 bits that nobody can tell in advance, or make others agree
/// with, without the key.
uint64_t siphash(const SipKey& key, ConstBytes message);

/// A key that nobody knows. Throws Error when the system has no randomness to give.
SipKey random_sip_key();

}  // namespace diwarp
