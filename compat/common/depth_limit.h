// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp::compat {

/// Reads and atomics of one connection, each way. librdmacm keeps the number in a byte, and 255
/// stands for "as many as there can be".
inline constexpr uint16_t kMaxDepth = 128;

}  // namespace diwarp::compat
