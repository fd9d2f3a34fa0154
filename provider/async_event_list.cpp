// SPDX-License-Identifier: Apache-2.0
#include "provider/async_event_list.h"

#include <new>
#include <utility>

namespace diwarp::provider {

bool AsyncEventList::push(const AsyncEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    if (!add(event)) return false;
  }
  blocking_wait_.wake();
  return true;
}

bool AsyncEventList::add(const AsyncEvent& event) {
  try {
    events_.push_back(event);
  } catch (const std::bad_alloc&) {
    return false;
  }
  if (events_.size() <= kMaxEvents) return true;
  events_.pop_front();
  return false;
}

std::optional<AsyncEvent> AsyncEventList::pop() {
  const std::lock_guard lock(mutex_);
  std::optional<AsyncEvent> event;
  if (events_.empty()) return event;
  event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace diwarp::provider
