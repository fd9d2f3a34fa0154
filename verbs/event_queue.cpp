// SPDX-License-Identifier: Apache-2.0
#include "diwarp/event_queue.h"

#include "rnic/context/event_queue.h"
#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp {

EventQueue::EventQueue(const Device& device)
    : impl_(std::make_shared<rnic::EventQueue>(impl_of(device))) {}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return impl_->get_event(timeout);
}

int EventQueue::descriptor() const { return impl_->descriptor(); }

}  // namespace diwarp
