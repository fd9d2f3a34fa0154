// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/device_context.h"

#include <algorithm>

#include "base/random.h"
#include "diwarp/error.h"
#include "rnic/context/event_queue.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kFirstNumber = 0x10000;  // above every UDP port
constexpr uint32_t kLastNumber = 0xffffff;  // 24 bits

}  // namespace

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
      next_number_(kFirstNumber + system_random_u32() % (kLastNumber - kFirstNumber)) {}

Duration DeviceContext::before_wait(Duration limit) {
  if (engine_.has_thread()) {
    engine_.hand_over();
    return limit;
  }
  engine_.poll_step();
  return std::min(limit, kManualWait);
}

uint32_t DeviceContext::take_number() {
  const std::lock_guard lock(numbers_mutex_);
  if (numbers_.size() > kLastNumber - kFirstNumber)
    throw Error(make_error_code(Errc::no_resources),
                "All queue pair numbers of the device are in use; destroy queue pairs first");
  do {
    next_number_ = next_number_ >= kLastNumber ? kFirstNumber : next_number_ + 1;
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
