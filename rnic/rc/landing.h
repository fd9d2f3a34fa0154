// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "diwarp/types.h"

namespace diwarp::rnic {

/// Where the payload of a segment goes that was judged: a list of SGEs, or one piece of memory, and
/// how far from its beginning.
struct Landing {
  std::span<const Sge> sges = {};
  Sge memory = {};  // where there are no sges
  uint64_t offset = 0;

  std::span<const Sge> list() const {
    return sges.empty() ? std::span<const Sge>(&memory, 1) : sges;
  }
};

}  // namespace diwarp::rnic
