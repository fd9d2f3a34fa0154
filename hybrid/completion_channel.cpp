// SPDX-License-Identifier: Apache-2.0
#include "hybrid/completion_channel.h"

#include <utility>

#include "hybrid/device.h"
#include "provider/take_ready.h"

namespace diwarp::hybrid {

CompletionChannel::CompletionChannel(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      halves_{.software = device_->halves().software->make_completion_channel(),
              .hardware = device_->halves().hardware->make_completion_channel()} {
  readiness_.add(halves_.software->descriptor());
  readiness_.add(halves_.hardware->descriptor());
  readiness_.add(wakes_.descriptor());
}

uint64_t CompletionChannel::add(const std::shared_ptr<Arming>& queue) {
  const std::lock_guard lock(mutex_);
  queues_[++last_key_] = queue;
  return last_key_;
}

void CompletionChannel::remove(uint64_t key) {
  const std::lock_guard lock(mutex_);
  queues_.erase(key);
}

/// The application's event; nothing where the queue is gone, or does not wait for one.
std::optional<CompletionEvent> CompletionChannel::event_of(uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(key);
  if (found == queues_.end() || !found->second->tell()) return std::nullopt;
  return CompletionEvent{found->second->context};
}

std::optional<CompletionEvent> CompletionChannel::take_from(provider::CompletionChannel& half) {
  while (const std::optional<CompletionEvent> event = half.get_event(Duration::zero()))
    if (const auto own = event_of(event->context)) return own;
  return std::nullopt;
}

std::optional<CompletionEvent> CompletionChannel::take() {
  if (wakes_.wait(Duration::zero())) return CompletionEvent{};
  const bool hardware_first = turn_.fetch_add(1) % 2 == 0;
  const Half first = hardware_first ? Half::hardware : Half::software;
  const Half second = hardware_first ? Half::software : Half::hardware;
  if (const auto event = take_from(*halves_.of(first))) return event;
  return take_from(*halves_.of(second));
}

std::optional<CompletionEvent> CompletionChannel::get_event(Duration timeout) {
  return provider::take_ready(*device_, readiness_, timeout, [this] { return take(); });
}

}  // namespace diwarp::hybrid
