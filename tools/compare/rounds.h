// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "common/device_choice.h"
#include "compare/figures.h"

namespace diwarp::tools {

struct Settings {
  uint64_t rounds = 7;
  Duration time = std::chrono::milliseconds(250);  ///< of one measurement, after a warm-up
  std::array<int, 2> cpus = {-1, -1};  ///< of the near and of the far end; -1: not bound
  bool ipv6 = false;
  DeviceChoice device = {};         ///< of both ends
  std::optional<size_t> size = {};  ///< of the messages; none: those of the rows
};

/// The first two processors that this process may use; where there is one, that for both ends.
std::array<int, 2> default_processors();
/// Throws Failure if this process may not use them.
void check_processors(const Settings& settings);

/// Near end: measures each lane once a round, in their order.
Measurements play_near(const Settings& settings, std::span<const LaneInfo> lanes, Control& control);
/// Far end: its part of that.
void play_far(const Settings& settings, Control& control);

}  // namespace diwarp::tools
