// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/event_queue.h"

#include <new>
#include <utility>

#include "rnic/context/device_context.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

EventQueue::EventQueue(std::shared_ptr<DeviceContext> device) : device_(std::move(device)) {
  device_->add_event_queue(*this);
}

EventQueue::~EventQueue() { device_->remove_event_queue(*this); }

void EventQueue::raise(const AsyncEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    if (!add(event)) return device_->counters().add_shared(Counter::events_dropped);
  }
  blocking_wait_.wake();
}

/// False where there are as many as before: it took the place of the oldest, or found no memory.
bool EventQueue::add(const AsyncEvent& event) {
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (events_.size() <= kMaxEvents) return true;
  events_.pop_front();
  return false;
}

AsyncEvent EventQueue::take() {
  const std::lock_guard lock(mutex_);
  AsyncEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return take_woken(device_->engine(), blocking_wait_, timeout,
                    [this] { return std::optional(take()); });
}

}  // namespace diwarp::rnic
