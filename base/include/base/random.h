// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>

#include "base/bytes.h"

namespace diwarp {

/// Repeatable randomness: xoshiro256**, seeded through splitmix64 as its authors advise. The same
/// seed gives the same sequence everywhere. Not for secrets.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) word = splitmix(seed);
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) {
    assert(bound > 0);
    const uint64_t mask = bound == 1 ? 0 : ~uint64_t{0} >> std::countl_zero(bound - 1);
    uint64_t drawn = next() & mask;
    while (drawn >= bound) drawn = next() & mask;
    return drawn;
  }

  /// Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// True with this probability: never at 0, always at 1.
  bool chance(double probability) { return unit() < probability; }

 private:
  static uint64_t splitmix(uint64_t& seed) {
    seed += 0x9E3779B97F4A7C15u;
    uint64_t mixed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
  }

  std::array<uint64_t, 4> state_;
};

/// Unpredictable bytes from the system. Throws Error when it has none to give.
void system_random(Bytes target);
uint32_t system_random_u32();

}  // namespace diwarp
