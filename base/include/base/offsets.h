// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp {

/// Whether the last of `length` bytes from `offset` on would have an offset beyond 64 bits.
constexpr bool wraps(uint64_t offset, uint64_t length) {
  return length != 0 && offset + (length - 1) < offset;
}

}  // namespace diwarp
