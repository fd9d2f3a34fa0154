// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <diwarp/validity_map.h>

namespace network {

using Range = diwarp::ValidityMap::Range;

/// What memory holds: each of its places has bytes of its own, so that what was placed wrongly
/// shows. Source and target begin with different ones.
enum class Contents : uint64_t { of_source = 1, of_target = 2 };

/// Fills memory that begins at `offset` of the whole.
void fill(std::span<std::byte> memory, Contents contents, uint64_t offset = 0);

/// Where the first byte is that is not what fill() would write; nothing if all are.
std::optional<uint64_t> first_wrong(std::span<const std::byte> memory, Contents contents,
                                    uint64_t offset = 0);

/// The same for parts of memory that begins at offset 0.
std::optional<uint64_t> first_wrong(std::span<const std::byte> memory, Contents contents,
                                    std::span<const Range> parts);

/// What of `length` bytes lies in none of the parts.
std::vector<Range> complement(std::vector<Range> parts, uint64_t length);

}  // namespace network
