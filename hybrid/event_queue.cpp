// SPDX-License-Identifier: Apache-2.0
#include "hybrid/event_queue.h"

#include <algorithm>
#include <utility>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "hybrid/device.h"

namespace diwarp::hybrid {

EventQueue::EventQueue(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      halves_{.software = device_->halves().software->make_event_queue(),
              .hardware = device_->halves().hardware->make_event_queue()} {
  both_.add(halves_.software->descriptor());
  both_.add(halves_.hardware->descriptor());
}

std::optional<AsyncEvent> EventQueue::get_event(Duration timeout) {
  const Clock& clock = SteadyClock::instance();
  const Time deadline = deadline_after(clock.now(), timeout);
  for (;;) {
    if (auto event = halves_.hardware->get_event(Duration::zero())) return event;
    if (auto event = halves_.software->get_event(Duration::zero())) return event;
    const Duration left = deadline - clock.now();
    if (left <= Duration::zero()) return std::nullopt;
    both_.wait(device_->before_wait(std::min(left, kLongestWait)));
  }
}

}  // namespace diwarp::hybrid
