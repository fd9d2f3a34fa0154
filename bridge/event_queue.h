// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "diwarp/attributes.h"
#include "provider/async_event_list.h"
#include "provider/event_queue.h"

namespace diwarp::bridge {

class Device;

class EventQueue final : public provider::EventQueue {
 public:
  explicit EventQueue(std::shared_ptr<Device> device);
  ~EventQueue() override;

  std::optional<AsyncEvent> get_event(Duration timeout) override;
  int descriptor() const override { return events_.descriptor(); }

  /// Any thread.
  void raise(const AsyncEvent& event) { events_.push(event); }

 private:
  std::shared_ptr<Device> device_;
  provider::AsyncEventList events_;
};

}  // namespace diwarp::bridge
