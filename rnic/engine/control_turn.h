// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace diwarp::rnic {

/// The control path's poller is asked once in so many steps while there is traffic.
inline constexpr uint32_t kStepsPerControl = 16;

/// The control path's turn in the steps of an engine, in manual mode: in each step that found
/// nothing else to do, and in one of kStepsPerControl at least. With the baton.
class ControlTurn {
 public:
  /// `step` returns the work done; none: the control path has a thread of its own, or is gone.
  void set_step(std::function<size_t()> step) { step_ = std::move(step); }

  /// `busy`: this step of the engine has found something to do.
  size_t take(bool busy) {
    if (!step_ || (busy && ++steps_since_ < kStepsPerControl)) return 0;
    steps_since_ = 0;
    return step_();
  }

 private:
  std::function<size_t()> step_;
  uint32_t steps_since_ = 0;
};

}  // namespace diwarp::rnic
