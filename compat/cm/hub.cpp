// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/hub.h"

#include <unistd.h>

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "compat/cm/event_facts.h"
#include "compat/cm/id.h"
#include "compat/common/immortal.h"
#include "compat/common/log.h"
#include "compat/common/process.h"
#include "compat/common/signals_blocked.h"

namespace diwarp::compat {

Hub& Hub::of_process() {
  static Immortal<std::mutex> mutex;
  static Hub* current = nullptr;
  const std::lock_guard lock(*mutex);
  if (current == nullptr || current->process_ != ::getpid()) current = new Hub;
  return *current;
}

Hub::Hub() : process_(::getpid()) {
  Process::begin_use();
  const SignalsBlocked blocked;
  std::thread([this] { run(); }).detach();
}

void Hub::run() {
  for (;;) try {
      if (auto event = channel_.get_event(Duration(-1))) deliver(std::move(*event));
    } catch (const std::exception& error) {  // no memory for an event: it is lost
      log_line(LogLevel::error, std::string("a connection event was lost: ") + error.what());
    }
}

/// A request that finds no listener any more is rejected when the event goes.
void Hub::deliver(diwarp::CmEvent event) {
  const uint64_t number = event.type == CmEventType::connect_request ? event.listener : event.id;
  PendingCmEvent pending;
  pending.event = event_of(event);
  pending.private_data = std::move(event.private_data);
  pending.request = std::move(event.request);
  post(number, std::move(pending));
}

void Hub::post(uint64_t number, PendingCmEvent pending) {
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(number);
  if (found == ids_.end()) return;
  pending.about = found->second.id;
  if (pending.device == nullptr) pending.device = found->second.device;
  pending.about->its_channel->events.push(std::move(pending));
}

uint64_t Hub::new_number() {
  const std::lock_guard lock(mutex_);
  return ++last_own_;
}

void Hub::add(uint64_t number, Id& id, ibv_device* device) {
  const std::lock_guard lock(mutex_);
  ids_[number] = {&id, device};
}

void Hub::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  ids_.erase(number);
}

void Hub::move(Id& id, const std::shared_ptr<EventChannel>& channel) {
  const std::lock_guard lock(mutex_);
  auto waiting = id.its_channel->events.purge(
      [&id](const PendingCmEvent& event) { return event.about == &id; });
  for (PendingCmEvent& event : waiting) channel->events.push(std::move(event));
  id.its_channel = channel;
  id.channel = channel.get();
}

std::shared_ptr<EventChannel> Hub::channel_of(const Id& id) {
  const std::lock_guard lock(mutex_);
  return id.its_channel;
}

}  // namespace diwarp::compat
