// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace diwarp::llp {

/// How a device meets others of its host; as DeviceOptions has it.
struct LocalSettings {
  bool required = false;   ///< nothing goes another way
  uint32_t after = 8;      ///< bursts in a row until a destination is sought
  size_t ring = 0;         ///< bytes of a ring's entries
  uint32_t max_rings = 0;  ///< that the device fills, and as many that it reads
  bool crc = false;        ///< CRCs are computed and checked
};

}  // namespace diwarp::llp
