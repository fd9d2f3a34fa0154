// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "llp/poller.h"

namespace diwarp::rnic {

/// A thread waits no longer than this while a descriptor could not be watched.
inline constexpr Duration kUnwatchedWait = std::chrono::milliseconds(1);

/// The wait of threads until an engine may have something to do: in its poller.
///
/// A thread begins to wait with the baton held. The next holder of the baton then knows that it
/// may have to wake a thread, and leaves all input sources in the poller.
class EngineWait {
 public:
  llp::Poller& poller() { return poller_; }

  // --- Any thread.

  bool any_thread() const { return waiting_threads_.load(std::memory_order_relaxed) != 0; }
  /// A thread that waits returns; where none does, the next one does not begin to.
  void wake();
  /// A thread that waits now looks at what the caller has left.
  void interrupt() {
    if (waiting_threads_.load() != 0) poller_.wake();
  }
  /// The next thread does not begin to wait.
  void skip_next_wait() { poked_.store(true); }

  // --- With the baton.

  /// Until `until`, when the engine has to run again. Returns for how long at most.
  Duration begin_wait(Time now, Time until, bool all_watched);
  /// A holder leaves something that is due at `turn`.
  void wake_for(Time turn) {
    if (turn < wait_until_.load()) poller_.wake();
  }

  // --- Without it, after begin_wait().

  /// `news`: something came since, so that there is nothing to wait for.
  void wait(Duration limit, bool news);

 private:
  llp::Poller poller_;
  std::atomic<uint32_t> waiting_threads_{0};   // in the poller
  std::atomic<Time> wait_until_{Time::max()};  // the one that waits looks again then at the latest
  std::atomic<bool> poked_{false};
};

}  // namespace diwarp::rnic
