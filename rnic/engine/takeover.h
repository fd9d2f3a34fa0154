// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/clock.h"
#include "diwarp/attributes.h"
#include "rnic/engine/timed_park.h"

namespace diwarp::rnic {

/// Decides which thread steps an engine: the application's while it polls, the RNIC thread
/// otherwise, which is parked meanwhile (docs/threading.md). The end of the timed park is put off
/// while the application goes on.
class Takeover {
 public:
  Takeover(const DeviceOptions& options, const Clock& clock)
      : takeover_(options.takeover), limit_(options.takeover_limit), clock_(clock) {}

  // --- Any thread.

  /// The application steps now.
  void stepped(Time now) {
    const Time last = last_drive_.load(std::memory_order_relaxed);
    last_drive_.store(now, std::memory_order_relaxed);
    if (now >= extend_park_at_.load(std::memory_order_relaxed)) extend_park(now, last);
  }
  /// It steps no more: the RNIC thread takes over at once.
  void hand_over();
  bool application_drives(Time now) const { return is_driving(now, last_drive_.load()); }

  // --- The RNIC thread.

  /// Steps aside while the application drives, and not once `stop` is set.
  void park(const std::atomic<bool>& stop);
  /// Any thread: the RNIC thread sees what was set for it.
  void end_park() { park_.end_in(Duration::zero()); }

 private:
  void extend_park(Time now, Time last_drive);
  bool is_driving(Time now, Time last_drive) const;

  const Duration takeover_;
  const Duration limit_;
  const Clock& clock_;
  /// When the application last stepped; Time::min(): it has handed over.
  std::atomic<Time> last_drive_{Time::min()};
  std::atomic<Time> extend_park_at_{Time::max()};  // by the application, if it steps then
  std::atomic<Duration> park_length_{Duration::zero()};
  std::atomic<bool> parked_{false};  // the RNIC thread, while the application drives
  TimedPark park_;
};

}  // namespace diwarp::rnic
