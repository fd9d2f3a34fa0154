// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "rnic/engine/work_meter.h"

namespace diwarp::rnic {

/// The control path's poller is asked once in so many steps while there is traffic.
inline constexpr uint32_t kStepsPerControl = 16;

/// What some steps of an engine end with. The control path has its turn, in manual mode: in each
/// step that found nothing else to do, and in one of kStepsPerControl at least. And one step of
/// kStepsPerMeasure is timed. Both have one countdown, so that all other steps end with one look at
/// that. With the baton.
class ControlTurn {
 public:
  /// `step` returns the work done; none: the control path has a thread of its own, or is gone.
  void set_step(std::function<size_t()> step) {
    step_ = std::move(step);
    countdown_ = 1;
  }

  /// Once at the end of each step: whether restart() and take() are to be called.
  bool is_due() { return --countdown_ == 0; }

  /// `busy`: this step of the engine has found something to do.
  size_t take(bool busy) {
    if (!step_ || (busy && ++steps_since_ < kStepsPerControl)) return 0;
    steps_since_ = 0;
    return step_();
  }

  /// Whether this step is to be timed.
  bool restart() {
    countdown_ = step_ ? 1 : kStepsPerMeasure;
    if (step_ && !meter_.is_due()) return false;
    meter_.restart();
    return true;
  }

 private:
  std::function<size_t()> step_;
  uint32_t steps_since_ = 0;
  uint32_t countdown_ = kStepsPerMeasure;
  WorkMeter meter_;  // while the control path has its turns, which each step may be
};

}  // namespace diwarp::rnic
