// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace diwarp {

using Time = std::chrono::steady_clock::time_point;
using Duration = std::chrono::nanoseconds;

/// So much later; Time::max(), which is never, where there is no such time. `duration` is not
/// negative.
constexpr Time saturating_add(Time time, Duration duration) {
  // guard(receive): duration > Time::max() - time => false
  return duration > Time::max() - time ? Time::max() : time + duration;
}

/// Where the engine learns the time; everything below it is told.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  static SteadyClock& instance() {
    static SteadyClock clock;
    return clock;
  }
  Time now() const override { return std::chrono::steady_clock::now(); }
};

/// Time that stands still until told: tests need not sleep. For one thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start = Time{}) : now_(start) {}
  Time now() const override { return now_; }
  void advance(Duration by) { now_ += by; }
  void set(Time to) { now_ = to; }

 private:
  Time now_;
};

}  // namespace diwarp
