// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace soak {

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

/// The seed of the contents of operation `number` of the process `life`.
uint64_t key_of(uint64_t seed, uint32_t life, Kind kind, uint64_t number);

/// Fills memory that begins at byte `offset` of the contents.
void fill(std::span<std::byte> memory, uint64_t key, uint64_t offset = 0);

/// Where the first byte is that is not what fill() writes; nothing if all are.
std::optional<size_t> first_wrong(std::span<const std::byte> memory, uint64_t key,
                                  uint64_t offset = 0);

/// The byte at `offset` of the contents.
std::byte byte_at(uint64_t key, uint64_t offset);

}  // namespace soak
