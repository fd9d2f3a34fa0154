// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace diwarp {

/// When a call with this timeout gives up. Negative: never.
inline Time deadline_after(Time now, Duration timeout) {
  return timeout < Duration::zero() ? Time::max() : saturating_add(now, timeout);
}

/// A wait without limit is cut into pieces of this length.
inline constexpr Duration kLongestWait = std::chrono::hours(1);

/// A wait of threads until they are woken or a time has passed. A wake that comes first is kept:
/// the next wait returns at once. Each wake ends one wait.
class BlockingWait {
 public:
  BlockingWait();

  /// Negative: without limit. True if a wake ended it (and is used up); false after the limit or,
  /// at any time, for no reason: look again at what was waited for.
  bool wait(Duration limit);
  void wake(unsigned count = 1);

  /// Polls readable while wakes are waiting.
  int descriptor() const { return event_.get(); }

 private:
  UniqueFd event_;
};

}  // namespace diwarp
