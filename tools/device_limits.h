// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/attributes.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/control.h"

namespace diwarp::tools {

/// A limit of a device.
struct Limit {
  const char* name;  ///< in JSON
  const char* text;
  uint64_t value = 0;
};

std::vector<Limit> limits_of(const DeviceAttributes& attributes);
Json limits_in_json(const DeviceAttributes& attributes);

/// The names of kCapabilities.
std::vector<std::string> names_of(Capability capabilities);
/// Those that the device lacks.
std::vector<std::string> lacks_of(const DeviceAttributes& attributes);

}  // namespace diwarp::tools
