// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/event_queue.h"

#include <utility>

#include "rnic/context/device_context.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

EventQueue::EventQueue(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {
  device_->add_event_queue(*this);
}

EventQueue::~EventQueue() { device_->remove_event_queue(*this); }

void EventQueue::raise(const AsyncEvent& event) {
  if (!events_.push(event)) device_->counters().add_shared(Counter::events_dropped);
}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return take_woken(device_->engine(), events_.blocking_wait(), timeout,
                    [this] { return events_.pop(); });
}

}  // namespace diwarp::rnic
