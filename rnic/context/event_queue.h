// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/blocking_wait.h"
#include "diwarp/attributes.h"
#include "provider/event_queue.h"

namespace diwarp::rnic {

class DeviceContext;

/// Events that nobody fetched; the oldest go first. Each takes about 100 bytes.
inline constexpr size_t kMaxEvents = 4096;

/// Where a device's asynchronous events are fetched. Each of a device's queues gets all of them.
class EventQueue final : public provider::EventQueue {
 public:
  explicit EventQueue(std::shared_ptr<DeviceContext> device);
  ~EventQueue() override;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  std::optional<AsyncEvent> get_event(Duration timeout) override;
  int descriptor() const override { return blocking_wait_.descriptor(); }

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
