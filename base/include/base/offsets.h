// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp {

/// Whether the last of `length` bytes from `offset` on would have an offset beyond 64 bits.
constexpr bool wraps(uint64_t offset, uint64_t length) {
  // guard(region-end): (length - 1) => length
  return length != 0 && offset + (length - 1) < offset;  // guard(ddp): without length != 0 &&
}

}  // namespace diwarp
