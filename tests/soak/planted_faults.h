// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "soak/line.h"
#include "soak/run_clock.h"
#include "soak/settings.h"

namespace soak {

/// The fault that was planted in this process, if any: the soak must find it.
class PlantedFaults {
 public:
  PlantedFaults(const Settings& settings, const RunClock& clock)
      : settings_(settings), clock_(clock) {}

  bool planted(const char* fault) const { return settings_.plant == fault; }
  /// Whether this fault is to happen now. It happens once, after two rounds.
  bool happens_once(const char* fault);
  /// Whether a message that came is to be forgotten.
  bool loses(const Line& line);
  /// Faults of the process itself, one at the end of each round.
  void harm_process();

 private:
  const Settings& settings_;
  const RunClock& clock_;
  bool happened_ = false;
  uint64_t losses_ = 0;  // messages of which every twentieth is lost
  std::vector<std::byte> leaked_;
};

}  // namespace soak
