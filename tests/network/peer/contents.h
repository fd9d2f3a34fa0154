// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <diwarp/validity_map.h>

#include "support/keyed_contents.h"

namespace network {

/// What memory holds: each of its places has bytes of its own, so that what was placed wrongly
/// shows. Source and target begin with different ones.
enum class Contents : uint64_t { of_source = 1, of_target = 2 };

inline uint64_t key_of(Contents contents) {
  return diwarp::test::mix(static_cast<uint64_t>(contents));
}

/// Whether memory that begins at `offset` of the whole holds these contents.
inline bool holds(std::span<const std::byte> memory, Contents contents, uint64_t offset = 0) {
  return !diwarp::test::first_wrong(memory, key_of(contents), offset);
}

/// Whether all of these ranges of the whole memory, which are of a map that begins at `offset` of
/// it, hold the contents.
template <class Ranges>
bool holds(std::span<const std::byte> memory, Contents contents, const Ranges& ranges,
           uint64_t offset) {
  for (const diwarp::ValidityMap::Range range : ranges) {
    const uint64_t at = offset + range.offset;
    if (!holds(memory.subspan(at, range.length), contents, at)) return false;
  }
  return true;
}

}  // namespace network
