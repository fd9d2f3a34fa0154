// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/clock.h"
#include "rnic/engine/engine.h"
#include "rnic/engine/sleeper.h"

/// How a call that blocks (connect, disconnect, get_request) waits.
namespace diwarp::rnic {

/// When a call with this timeout gives up. Negative: never.
inline Time deadline_after(Time now, Duration timeout) {
  return timeout < Duration::zero() ? Time::max() : saturating_add(now, timeout);
}

/// A wait without limit is cut into pieces of this length.
inline constexpr Duration kLongestRest = std::chrono::hours(1);
/// In manual mode nothing tells the caller that the control path has something to do.
inline constexpr Duration kManualRest = std::chrono::milliseconds(1);

/// One rest of at most `limit`. True if it used up a wake of `sleeper`; in any case look again at
/// what is waited for. In manual mode the caller steps the engine instead of sleeping.
inline bool rest(Engine& engine, Sleeper& sleeper, Duration limit) {
  limit = std::clamp(limit, Duration::zero(), kLongestRest);
  if (engine.has_thread()) {
    engine.hand_over();
    return sleeper.sleep(limit);
  }
  const bool worked = engine.poll_step() != 0;
  if (sleeper.sleep(Duration::zero())) return true;
  if (!worked) engine.sleep_until_work(std::min(limit, kManualRest));
  return false;
}

}  // namespace diwarp::rnic
