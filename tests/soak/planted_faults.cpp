// SPDX-License-Identifier: Apache-2.0
#include "soak/planted_faults.h"

#include <unistd.h>

#include <cstdlib>

namespace soak {

bool PlantedFaults::happens_once(const char* fault) {
  if (!planted(fault) || clock_.rounds() < 2 || happened_) return false;
  happened_ = true;
  return true;
}

/// One in twenty, for what follows on one alone may end before it shows.
bool PlantedFaults::loses(const Line& line) {
  const bool meant = (planted("shared-lost") && line.shares) ||
                     (planted("lost") && line.type == diwarp::QpType::rd);
  return meant && clock_.rounds() >= 2 && losses_++ % 20 == 0;
}

void PlantedFaults::harm_process() {
  if (planted("leak")) {
    leaked_.resize(leaked_.size() + (size_t{1} << 20), std::byte{1});
  } else if (planted("descriptor-leak")) {
    for (int i = 0; i < 4; ++i) [[maybe_unused]] const int leaked = ::dup(STDERR_FILENO);
  } else if (planted("crash") && clock_.rounds() == 2) {
    std::abort();
  } else if (planted("end") && clock_.rounds() == 2) {
    std::exit(0);
  }
}

}  // namespace soak
