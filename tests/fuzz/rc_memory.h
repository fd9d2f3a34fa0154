// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fuzz/guarded_memory.h"

namespace diwarp::fuzz {

/// Tagged offsets of the first bytes of what peers may name, and of where diwarp's Reads go.
inline constexpr uint64_t kBase = 0x10000;
inline constexpr uint64_t kSinkBase = 0x900000;
/// The sink STag of a Read of memory that peers may only read.
inline constexpr uint32_t kReadOnlySink = 0x5EED0001;
/// The memory that diwarp's Writes name at the peer: the tagged offset says which byte of the
/// outbox it is.
inline constexpr uint64_t kRemoteBase = 0x5000;
/// The pattern of Read responses: byte at its tagged offset.
inline constexpr uint32_t kResponseSeed = 1000;
/// Where peers may write into a region that is lent in part: its first byte, and how many.
inline constexpr size_t kLentAt = 100;
inline constexpr size_t kLent = 1000;

/// How many bytes each STag of RcRegions::stag() names from kBase on, where it names any.
inline constexpr std::array<size_t, 8> kNamed{8192, 8192, 8192, 2048, 512, 512, kLent, kLent};

/// The memory of the application under attack.
struct RcMemory {
  GuardedMemory open{kNamed[0], 1};       ///< peers may do everything
  GuardedMemory read_only{kNamed[3], 2};  ///< peers may read it and invalidate its STag
  GuardedMemory closed{kNamed[4], 3};     ///< peers may do nothing
  GuardedMemory foreign{kNamed[5], 4};    ///< peers may do everything, but in another domain
  GuardedMemory bound{2048, 5};           ///< a memory window may show a part of it
  GuardedMemory fast{2048, 6};            ///< a fast registration may show a part of it
  GuardedMemory inbox{8 * 16384, 7};      ///< receives
  GuardedMemory sink{4 * 8192, 8};        ///< Reads
  GuardedMemory results{64, 9};           ///< atomics
  GuardedMemory outbox{32768, 10};        ///< what is sent
  std::vector<bool> receives = std::vector<bool>(8 * 16384);  ///< bytes of the inbox ever posted

  /// `sinks_known`: the peer answered Reads with the right bytes, where it answered.
  void check(bool sinks_known) const;
};

}  // namespace diwarp::fuzz
