// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "diwarp/attributes.h"
#include "provider/async_event_list.h"
#include "provider/event_queue.h"

namespace diwarp::rnic {

class DeviceContext;

/// Where a device's asynchronous events are fetched. Each of a device's queues gets all of them.
class EventQueue final : public provider::EventQueue {
 public:
  explicit EventQueue(std::shared_ptr<DeviceContext> device);
  ~EventQueue() override;
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  std::optional<AsyncEvent> get_event(Duration timeout) override;
  int descriptor() const override { return events_.descriptor(); }

  /// Any thread.
  void raise(const AsyncEvent& event);

 private:
  std::shared_ptr<DeviceContext> device_;
  provider::AsyncEventList events_;
};

}  // namespace diwarp::rnic
