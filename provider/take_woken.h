// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "provider/waitable.h"

namespace diwarp::provider {

/// What `take` returns once `wait` was woken, or something empty after `timeout` (negative: waits
/// for ever). A wake and what it tells of belong together: the thread that used the wake up takes.
/// With Progress::manual the thread serves the device in between, once at least.
template <class Take>
auto take_woken(Waitable& device, BlockingWait& wait, Duration timeout, Take take)
    -> decltype(take()) {
  const Clock& clock = SteadyClock::instance();
  const Time deadline = deadline_after(clock.now(), timeout);
  for (;;) {
    const Duration left = deadline - clock.now();
    const Duration limit = std::clamp(left, Duration::zero(), kLongestWait);
    if (wait.wait(device.before_wait(limit)))
      if (auto taken = take()) return taken;
    if (left <= Duration::zero()) return {};
  }
}

}  // namespace diwarp::provider
