// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/blocking_wait.h"
#include "base/clock.h"

namespace diwarp::provider {

// Tunables.

/// How long a poll with a timeout spins before it sleeps.
inline constexpr Duration kSpin = std::chrono::microseconds(50);
/// How long it sleeps at a time where nothing tells it of completions.
inline constexpr Duration kNap = std::chrono::microseconds(100);

/// A poll with a timeout (negative: for ever) of a completion queue that sleeps on a channel.
/// `poll` and `sleep(limit)` return how many completions came; `sleep` returns when some may have
/// come. `sleepers` counts the threads that sleep: one that stops may have used up the event of
/// another one's completion, or the arming that another one counts on, and calls `wake_another`.
template <class Poll, class Sleep, class WakeAnother>
size_t timed_poll(Duration timeout, std::atomic<uint32_t>& sleepers, Poll poll, Sleep sleep,
                  WakeAnother wake_another) {
  const Clock& clock = SteadyClock::instance();
  const Time begun = clock.now();
  const Time deadline = deadline_after(begun, timeout);
  size_t count = poll();
  bool slept = false;
  for (Time now = clock.now(); count == 0 && now < deadline; now = clock.now()) {
    if (now - begun > kSpin) {
      slept = true;
      ++sleepers;
      count = sleep(std::min<Duration>(deadline - now, kLongestWait));
      --sleepers;
    }
    if (count == 0) count = poll();
  }
  if (slept && sleepers != 0) wake_another();
  return count;
}

}  // namespace diwarp::provider
