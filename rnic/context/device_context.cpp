// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/device_context.h"

#include <algorithm>
#include <string>

#include "base/random.h"
#include "diwarp/error.h"
#include "rnic/context/event_queue.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

DeviceContext::DeviceContext(const Address& address, const DeviceOptions& options,
                             const Clock& clock)
    : address_(address.with_port(0)),
      name_(address_.host()),
      options_(options),
      counters_(address_.to_string()),
      engine_(options_, clock, counters_.get()),
      counter_log_(engine_, name_),
      // guard(rows:stags-random): , system_random_u32 => , [drawn = STag{0}]() mutable { return
      //     drawn += 256; }
      regions_([this] { engine_.exclusively([] {}); }, system_random_u32),
      next_number_(kLeastRcNumber + system_random_u32() % (kMaxRcNumber - kLeastRcNumber)) {}

Duration DeviceContext::before_wait(Duration limit) {
  if (engine_.has_thread()) {
    engine_.hand_over();
    return limit;
  }
  engine_.poll_step();
  return std::min(limit, kManualWait);
}

uint32_t DeviceContext::take_number(uint32_t chosen) {
  const std::lock_guard lock(numbers_mutex_);
  return chosen == 0 ? take_free_number() : take_chosen_number(chosen);
}

uint32_t DeviceContext::take_chosen_number(uint32_t chosen) {
  if (chosen < kLeastRcNumber || chosen > kMaxRcNumber)  // guard(chosen-number): condition => false
    throw Error(make_error_code(Errc::invalid_argument),
                "The number of an RC queue pair is from " + std::to_string(kLeastRcNumber) +
                    " to " + std::to_string(kMaxRcNumber) + ", not " + std::to_string(chosen));
  if (!numbers_.insert(chosen).second)  // guard(chosen-number): condition => false
    throw Error(make_error_code(Errc::address_in_use),
                "Another queue pair of the device has the number " + std::to_string(chosen));
  return chosen;
}

uint32_t DeviceContext::take_free_number() {
  if (numbers_.size() > kMaxRcNumber - kLeastRcNumber)
    throw Error(make_error_code(Errc::no_resources),
                "All queue pair numbers of the device are in use; destroy queue pairs first");
  do {
    next_number_ = next_number_ >= kMaxRcNumber ? kLeastRcNumber : next_number_ + 1;
  } while (!numbers_.insert(next_number_).second);
  return next_number_;
}

void DeviceContext::return_number(uint32_t number) {
  const std::lock_guard lock(numbers_mutex_);
  numbers_.erase(number);
}

void DeviceContext::raise(const AsyncEvent& event) {
  const std::lock_guard lock(events_mutex_);
  for (EventQueue* queue : event_queues_) queue->raise(event);
}

void DeviceContext::add_event_queue(EventQueue& queue) {
  const std::lock_guard lock(events_mutex_);
  event_queues_.push_back(&queue);
}

void DeviceContext::remove_event_queue(EventQueue& queue) {
  const std::lock_guard lock(events_mutex_);
  std::erase(event_queues_, &queue);
}

}  // namespace diwarp::rnic
