// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// The limits of the devices, which ibv_query_device() tells. They are like those of iWARP
/// adapters, and below diwarp's own.
namespace fake {

inline constexpr uint32_t kMaxWr = 4000;     ///< requests in a queue; no power of two
inline constexpr uint32_t kMaxSge = 6;       ///< of a request
inline constexpr uint32_t kMaxInline = 128;  ///< bytes
inline constexpr int kMaxCqe = 65536;
inline constexpr uint32_t kMaxRdAtomic = 32;  ///< Reads and atomics outstanding, either way
inline constexpr uint32_t kMaxMessage = uint32_t{1} << 30;  ///< bytes
inline constexpr int kMaxObjects = 4096;                    ///< of each kind; not enforced

}  // namespace fake
