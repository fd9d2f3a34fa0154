// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Bytes that tell where they belong: what memory is full of, and what messages carry. Those at one
/// place differ from those at the next, and those of one seed from those of another.
namespace diwarp::fuzz {

/// Bytes `from` on of the pattern of `seed`.
std::vector<std::byte> pattern(uint32_t seed, size_t size, uint64_t from = 0);

/// Whether these are bytes `from` on of that pattern.
bool is_pattern(std::span<const std::byte> bytes, uint32_t seed, uint64_t from = 0);

}  // namespace diwarp::fuzz
