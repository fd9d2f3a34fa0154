// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/pattern.h"

namespace diwarp::tools {

// Messages that a peer writes into memory, where no completion tells of them: each ends with a
// byte, the mark, that differs from what was there before. `lap` counts the messages of one slot.

/// The message without its mark; it has at least the mark.
std::span<std::byte> contents_of(std::span<std::byte> message);

void set_mark(std::span<std::byte> message, uint64_t lap);

/// Whether the message of this lap has come. Another thread may be writing it.
bool is_marked(std::span<std::byte> message, uint64_t lap);

/// first_difference(), for contents whose mark has been seen. The RNIC thread may have written the
/// mark before other bytes, so what differs is looked at again for a while.
std::optional<size_t> lasting_difference(std::span<const std::byte> contents, uint64_t number,
                                         Way way);

}  // namespace diwarp::tools
