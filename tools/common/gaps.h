// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/validity_map.h>

#include <cstdint>

#include "common/control.h"

namespace diwarp::tools {

/// The ranges that are missing in messages of which a part came: Write-Records, and Reads over UD.
struct GapCount {
  uint64_t count = 0;
  uint64_t bytes = 0;    ///< of all of them together
  uint64_t largest = 0;  ///< bytes of the largest one

  void add(const ValidityMap& validity);
  void add(const GapCount& other);
};

/// As one end tells it to the other. Throws Failure if the message's "gaps" are none.
Json to_json(const GapCount& gaps);
GapCount gaps_in(const Json& message);

}  // namespace diwarp::tools
