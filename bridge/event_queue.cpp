// SPDX-License-Identifier: Apache-2.0
#include "bridge/event_queue.h"

#include <utility>

#include "bridge/device.h"
#include "provider/take_woken.h"

namespace diwarp::bridge {

EventQueue::EventQueue(std::shared_ptr<Device> device) : device_(std::move(device)) {
  device_->async_events().add(*this);
}

EventQueue::~EventQueue() { device_->async_events().remove(*this); }

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return provider::take_woken(*device_, events_.blocking_wait(), timeout,
                              [this] { return events_.pop(); });
}

}  // namespace diwarp::bridge
