// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/blocking_wait.h"
#include "diwarp/attributes.h"

namespace diwarp::rnic {

class DeviceContext;

/// Events that nobody fetched; the oldest go first. Each takes about 100 bytes.
inline constexpr size_t kMaxEvents = 4096;

/// Where a device's asynchronous events are fetched. Each of a device's queues gets all of them.
class EventQueue {
 public:
  explicit EventQueue(std::shared_ptr<DeviceContext> device);
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  /// Nothing after `timeout`.
  std::optional<AsyncEvent> get_event(Duration timeout);
  int descriptor() const { return blocking_wait_.descriptor(); }

  /// Any thread.
  void raise(const AsyncEvent& event);

 private:
  bool add(const AsyncEvent& event);
  AsyncEvent take();

  std::shared_ptr<DeviceContext> device_;
  std::mutex mutex_;  // guards events_
  std::deque<AsyncEvent> events_;
  BlockingWait blocking_wait_;  // one wake per event
};

}  // namespace diwarp::rnic
