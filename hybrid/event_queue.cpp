// SPDX-License-Identifier: Apache-2.0
#include "hybrid/event_queue.h"

#include <utility>

#include "hybrid/device.h"
#include "provider/take_ready.h"

namespace diwarp::hybrid {

EventQueue::EventQueue(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      halves_{.software = device_->halves().software->make_event_queue(),
              .hardware = device_->halves().hardware->make_event_queue()} {
  readiness_.add(halves_.software->descriptor());
  readiness_.add(halves_.hardware->descriptor());
}

std::optional<AsyncEvent> EventQueue::take() {
  if (auto event = halves_.hardware->get_event(Duration::zero())) return event;
  return halves_.software->get_event(Duration::zero());
}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  return provider::take_ready(*device_, readiness_, timeout, [this] { return take(); });
}

}  // namespace diwarp::hybrid
