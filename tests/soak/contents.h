// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "support/keyed_contents.h"

namespace soak {

using diwarp::test::byte_at;
using diwarp::test::fill;
using diwarp::test::first_wrong;

/// The owner of bytes. Each has contents of its own, so that a message which is placed in the
/// memory of another operation shows.
enum class Kind : uint8_t {
  message,
  short_message,
  written,    ///< by a peer
  readable,   ///< by a peer
  untouched,  ///< what memory holds before it is written
  scribble,   ///< what nobody may see, nor write over
  immediate,
};

/// The key of the contents of operation `number` of the process `life`.
inline uint64_t key_of(uint64_t seed, uint32_t life, Kind kind, uint64_t number) {
  using diwarp::test::mix;
  return mix(mix(mix(seed + life) + static_cast<uint64_t>(kind)) + number);
}

}  // namespace soak
