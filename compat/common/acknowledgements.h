// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "compat/common/process.h"

namespace diwarp::compat {

/// The events of an object that the program has fetched, and those that it has acknowledged: the
/// object is destroyed only when these are all.
class Acknowledgements {
 public:
  void count_fetched() {
    const std::lock_guard lock(mutex_);
    ++fetched_;
  }
  void acknowledge(uint64_t events = 1) {
    const std::lock_guard lock(mutex_);
    acknowledged_ += events;
    changed_.notify_all();
  }
  /// Waits for the program: until it has acknowledged all that it has fetched by now. Does not wait
  /// in a forked child: its parent has the events.
  void wait_for_all() {
    if (!process_.is_own()) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, all = fetched_] { return acknowledged_ >= all; });
  }

 private:
  const Process process_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  uint64_t fetched_ = 0;
  uint64_t acknowledged_ = 0;
};

}  // namespace diwarp::compat
