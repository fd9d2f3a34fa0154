// SPDX-License-Identifier: Apache-2.0
#include "diwarp/event_queue.h"

#include "provider/device.h"
#include "provider/event_queue.h"
#include "verbs/handle_access.h"

namespace diwarp {

EventQueue::EventQueue(const Device& device) : impl_(impl_of(device)->make_event_queue()) {}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return impl_->get_event(timeout);
}

int EventQueue::descriptor() const { return impl_->descriptor(); }

}  // namespace diwarp
