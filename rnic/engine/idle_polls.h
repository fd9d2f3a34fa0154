// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/clock.h"

namespace diwarp::rnic {

/// When a thread that polls in vain yields its processor: what it waits for may come from a thread
/// that waits for a processor.
class IdlePolls {
 public:
  explicit IdlePolls(Duration yield_after) : yield_after_(yield_after) {}

  /// Some thread of the application has polled. True if it shall yield now.
  bool is_yield_due(Time now, bool worked) {
    const bool due = !worked && now - since_.load(std::memory_order_relaxed) >= yield_after_;
    if (worked || due) since_.store(now, std::memory_order_relaxed);
    return due;
  }

 private:
  const Duration yield_after_;
  /// When a poll last found work, or a thread yielded.
  std::atomic<Time> since_{Time{}};
};

}  // namespace diwarp::rnic
