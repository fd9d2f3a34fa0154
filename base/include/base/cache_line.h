// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp {

/// Bytes that two threads should not share when each writes its own part. Fixed, because the
/// standard's constant may differ between translation units.
inline constexpr size_t kCacheLine = 64;

}  // namespace diwarp
