// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace diwarp::rnic {

/// The end of one step in so many is timed. A prime number: the steps of a message come in a
/// pattern, and all of that are to have their turn.
inline constexpr uint32_t kStepsPerMeasure = 61;
/// A step that took longer was not running, mostly: its thread had lost the processor.
inline constexpr Duration kMeasureLimit = std::chrono::milliseconds(1);

/// Estimates how long an engine's steps take without a look at the clock in each. With the baton.
class WorkMeter {
 public:
  /// Once in each step: whether this one is to be timed. If so, restart() follows.
  bool is_due() { return --left_ == 0; }
  void restart() { left_ = kStepsPerMeasure; }

  /// The nanoseconds that one timed step stands for.
  static uint64_t estimate(Duration took) {
    const Duration counted = std::clamp(took, Duration::zero(), kMeasureLimit);
    return static_cast<uint64_t>(counted.count()) * kStepsPerMeasure;
  }

 private:
  uint32_t left_ = kStepsPerMeasure;
};

}  // namespace diwarp::rnic
