// SPDX-License-Identifier: Apache-2.0
#include "bridge/event_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>

#include "base/fork_guard.h"
#include "base/signals_blocked.h"
#include "bridge/device.h"
#include "bridge/refuse.h"

namespace diwarp::bridge {
namespace {

template <class Work>
void begin_without_signals(Work&& work) {
  const SignalsBlocked blocked;
  try {
    std::thread(std::forward<Work>(work)).detach();
  } catch (const std::system_error& error) {
    throw Error(error.code(), "The thread that serves hardware devices cannot be started");
  }
}

}  // namespace

EventThread& EventThread::of_process() {
  static std::mutex mutex;
  static EventThread* only = nullptr;  // never destroyed: the thread uses it
  static ForkGuard* born = nullptr;
  const std::lock_guard lock(mutex);
  if (only != nullptr && !born->in_child()) return *only;
  std::unique_ptr<EventThread> made(new EventThread);
  auto began = std::make_unique<ForkGuard>();
  begin_without_signals([thread = made.get()] { thread->run(); });
  born = began.release();
  return *(only = made.release());
}

void EventThread::add(const std::shared_ptr<Device>& device) {
  {
    const std::lock_guard lock(mutex_);
    known_.push_back({device.get(), device});
  }
  wake_.wake();
}

void EventThread::remove(const Device& device) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [&](const Known& known) { return known.device == &device; });
  }
  wake_.wake();
}

/// The devices that live, and the descriptors to wait for.
std::vector<std::shared_ptr<Device>> EventThread::collect(std::vector<pollfd>& descriptors) {
  std::vector<std::shared_ptr<Device>> devices;
  descriptors.assign({{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}});
  const std::lock_guard lock(mutex_);
  devices.reserve(known_.size());  // no device may end with the mutex held
  for (const Known& known : known_) {
    const std::shared_ptr<Device> device = known.alive.lock();
    if (!device) continue;
    devices.push_back(device);
    for (const int descriptor : device->descriptors())
      descriptors.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
  }
  return devices;
}

/// Serves all devices once. Returns how long nothing will have to be done but for descriptors.
Duration EventThread::serve(std::vector<pollfd>& descriptors) {
  Duration limit = std::chrono::hours(1);
  for (const std::shared_ptr<Device>& device : collect(descriptors)) {
    device->step();
    limit = std::min(limit, device->time_to_deadline());
  }
  return limit;
}

void EventThread::run() {
  constexpr Duration kRetry = std::chrono::milliseconds(10);
  std::vector<pollfd> descriptors;
  for (;;) {
    Duration limit = kRetry;
    try {
      limit = serve(descriptors);      // keeps no device while the thread waits
    } catch (const std::exception&) {  // for want of memory
      descriptors.clear();
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(limit);
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(wait.count()));
    static_cast<void>(wake_.wait(Duration::zero()));
  }
}

}  // namespace diwarp::bridge
