// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/event_channel.h"

#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "compat/cm/id.h"
#include "compat/common/immortal.h"

namespace diwarp::compat {
namespace {

/// The channels that the program holds.
struct Held {
  std::mutex mutex;  // guards what follows
  std::unordered_map<rdma_event_channel*, std::shared_ptr<EventChannel>> channels;
};

Held& held() {
  static Immortal<Held> of_process;
  return *of_process;
}

}  // namespace

void PendingCmEvent::fetched() { about->acknowledgements.count_fetched(); }

std::shared_ptr<EventChannel> EventChannel::make() {
  auto made = std::make_shared<EventChannel>();
  const std::lock_guard lock(held().mutex);
  held().channels[made.get()] = made;
  return made;
}

std::shared_ptr<EventChannel> EventChannel::shared(rdma_event_channel* channel) {
  const std::lock_guard lock(held().mutex);
  const auto found = held().channels.find(channel);
  refuse_if(found == held().channels.end(), EINVAL);
  found->second->process.check();
  return found->second;
}

bool EventChannel::release(rdma_event_channel* channel) {
  std::shared_ptr<EventChannel> released;
  {
    const std::lock_guard lock(held().mutex);
    const auto found = held().channels.find(channel);
    if (found == held().channels.end()) return false;
    released = std::move(found->second);
    held().channels.erase(found);
  }
  released->events.close();  // requests among what is left are rejected here
  return true;
}

}  // namespace diwarp::compat
