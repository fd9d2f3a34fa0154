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
///
/// The application drives once it has stepped for an eighth of `takeover` without a pause. A
/// program that polls for a moment, until what it posted is sent, and then looks into memory for
/// what comes does not: what comes would wait for a whole park.
class Takeover {
 public:
  Takeover(const DeviceOptions& options, const Clock& clock)
      : takeover_(options.takeover), limit_(options.takeover_limit), clock_(clock) {}

  // --- Any thread.

  /// The application steps now.
  void stepped(Time now) {
    const Time last = last_drive_.load(std::memory_order_relaxed);
    if (!follows(now, last)) driving_since_.store(now, std::memory_order_relaxed);
    last_drive_.store(now, std::memory_order_release);  // after the first one
    if (now >= extend_park_at_.load(std::memory_order_relaxed)) extend_park(now, last);
  }
  /// It steps no more: the RNIC thread takes over at once.
  void hand_over();
  bool application_drives(Time now) const;

  // --- The RNIC thread.

  /// It has served what came, and nothing more is to do: what the application polled before does
  /// not count.
  void served() { last_drive_.store(Time::min(), std::memory_order_relaxed); }
  /// Steps aside while the application drives, and not once `stop` is set.
  void park(const std::atomic<bool>& stop);
  /// Any thread: the RNIC thread sees what was set for it.
  void end_park() { park_.end_in(Duration::zero()); }

 private:
  void extend_park(Time now, Time last_drive);
  /// Whether a step now belongs to those up to `last`. A thread that polls without a pause comes
  /// back much sooner.
  bool follows(Time now, Time last) const {
    return last != Time::min() && now - last < takeover_ / 2;
  }

  const Duration takeover_;
  const Duration limit_;
  const Clock& clock_;
  /// When the application last stepped; Time::min(): it has handed over, or was served since.
  std::atomic<Time> last_drive_{Time::min()};
  std::atomic<Time> driving_since_{Time::min()};   // the first of its steps without a pause
  std::atomic<Time> extend_park_at_{Time::max()};  // by the application, if it steps then
  std::atomic<Duration> park_length_{Duration::zero()};
  std::atomic<bool> parked_{false};  // the RNIC thread, while the application drives
  TimedPark park_;
};

}  // namespace diwarp::rnic
