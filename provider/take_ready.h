// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "base/readiness.h"
#include "provider/waitable.h"

namespace diwarp::provider {

/// What `take` returns as soon as that is something, or something empty after `timeout` (negative:
/// waits for ever). In between the thread sleeps until `ready` is readable; with Progress::manual
/// it serves the device.
template <class Take>
auto take_ready(Waitable& device, const Readiness& ready, Duration timeout, Take take)
    -> decltype(take()) {
  const Clock& clock = SteadyClock::instance();
  const Time deadline = deadline_after(clock.now(), timeout);
  for (;;) {
    if (auto taken = take()) return taken;
    const Duration left = deadline - clock.now();
    if (left <= Duration::zero()) return {};
    ready.wait(device.before_wait(std::min(left, kLongestWait)));
  }
}

}  // namespace diwarp::provider
