// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "llp/poller.h"

namespace diwarp::rnic {

/// A thread sleeps no longer than this while a descriptor could not be watched.
inline constexpr Duration kUnwatchedSleep = std::chrono::milliseconds(1);

/// Where threads sleep until an engine may have something to do: in its poller.
///
/// A thread begins to sleep with the baton held. The next holder of the baton then knows that it
/// may have to wake a thread, and leaves all input sources in the poller.
class EngineSleep {
 public:
  llp::Poller& poller() { return poller_; }

  // --- Any thread.

  bool anybody() const { return sleepers_.load(std::memory_order_relaxed) != 0; }
  /// A thread that sleeps returns; where none does, the next one does not begin to.
  void wake();
  /// A thread that sleeps now looks at what the caller has left.
  void interrupt() {
    if (sleepers_.load() != 0) poller_.wake();
  }
  /// The next thread does not begin to sleep.
  void keep_awake() { poked_.store(true); }

  // --- With the baton.

  /// Until `until`, when the engine has to run again. Returns for how long at most.
  Duration begin(Time now, Time until, bool all_watched);
  /// A holder leaves something that is due at `turn`.
  void wake_for(Time turn) {
    if (turn < parked_until_.load()) poller_.wake();
  }

  // --- Without it, after begin().

  /// `news`: something came since, so that there is no time to sleep.
  void sleep(Duration limit, bool news);

 private:
  llp::Poller poller_;
  std::atomic<uint32_t> sleepers_{0};  // threads that sleep in the poller
  std::atomic<Time> parked_until_{
      Time::max()};  // the one that sleeps looks again then at the latest
  std::atomic<bool> poked_{false};
};

}  // namespace diwarp::rnic
