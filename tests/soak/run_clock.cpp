// SPDX-License-Identifier: Apache-2.0
#include "soak/run_clock.h"

#include <algorithm>
#include <chrono>

namespace soak {

namespace {

/// What one turn of the loop counts at most: a process that did not run has waited for nothing.
constexpr double kLongestTurn = 0.5;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void RunClock::start() { last_ = steady_seconds(); }

void RunClock::tick(bool peer_stopped) {
  const double time = steady_seconds();
  const double passed = std::min(time - last_, kLongestTurn);
  last_ = time;
  wall_ += passed;
  if (!peer_stopped) now_ += passed;
}

}  // namespace soak
