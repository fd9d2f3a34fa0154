// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

#include "base/blocking_wait.h"
#include "diwarp/attributes.h"

namespace diwarp::provider {

/// Events that nobody fetched; the oldest go first. Each takes about 100 bytes.
inline constexpr size_t kMaxEvents = 4096;

/// The events of an event queue. Any thread.
class AsyncEventList {
 public:
  /// False where there are as many as before: it took the place of the oldest, or found no memory.
  bool push(const AsyncEvent& event);
  std::optional<AsyncEvent> pop();
  /// One wake per event.
  BlockingWait& blocking_wait() { return blocking_wait_; }
  int descriptor() const { return blocking_wait_.descriptor(); }

 private:
  bool add(const AsyncEvent& event);

  std::mutex mutex_;  // guards events_
  std::deque<AsyncEvent> events_;
  BlockingWait blocking_wait_;
};

}  // namespace diwarp::provider
