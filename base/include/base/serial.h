// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp {

/// True if `a` comes before `b` in serial number arithmetic (RFC 1982).
constexpr bool serial_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

}  // namespace diwarp
