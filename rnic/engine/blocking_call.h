// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "rnic/engine/engine.h"

/// How a call that blocks (connect, disconnect, get_request) waits.
namespace diwarp::rnic {

/// In manual mode nothing tells the caller that the control path has something to do.
inline constexpr Duration kManualWait = std::chrono::milliseconds(1);

/// One wait of at most `limit`. True if it used up a wake of `wait`; in any case look again at
/// what is waited for. In manual mode the caller steps the engine instead of waiting.
inline bool block(Engine& engine, BlockingWait& wait, Duration limit) {
  limit = std::clamp(limit, Duration::zero(), kLongestWait);
  if (engine.has_thread()) {
    engine.hand_over();
    return wait.wait(limit);
  }
  const bool worked = engine.poll_step() != 0;
  if (wait.wait(Duration::zero())) return true;
  if (!worked) engine.wait_for_work(std::min(limit, kManualWait));
  return false;
}

/// Blocks until `wait` is woken, and then returns what `take` gives; something empty after
/// `timeout`. A result and its wake belong together: the thread that used the wake up takes. A
/// wake whose cause has gone meanwhile leaves `take` empty-handed, and the wait goes on.
template <class Take>
auto take_woken(Engine& engine, BlockingWait& wait, Duration timeout, Take take)
    -> decltype(take()) {
  const Time deadline = deadline_after(engine.clock().now(), timeout);
  for (;;) {
    const Time now = engine.clock().now();
    if (block(engine, wait, deadline - now))
      if (auto taken = take()) return taken;
    if (now >= deadline) return {};
  }
}

}  // namespace diwarp::rnic
