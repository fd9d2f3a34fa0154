// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <memory>
#include <mutex>
#include <vector>

#include "base/blocking_wait.h"
#include "base/clock.h"

namespace diwarp::bridge {

class Device;

/// The thread that serves the connection manager and the asynchronous events of all bridged devices
/// of the process but those of Progress::manual. It lives as long as the process.
class EventThread {
 public:
  /// Begins it where the process, or a child after a fork, has none yet. Throws Error.
  static EventThread& of_process();

  void add(const std::shared_ptr<Device>& device);
  /// From then on the thread does not wait for the device's descriptors, which may be closed.
  void remove(const Device& device);
  /// A device has a deadline that may be earlier than what the thread waits for.
  void wake() { wake_.wake(); }

 private:
  EventThread() = default;
  [[noreturn]] void run();
  Duration serve(std::vector<pollfd>& descriptors);
  std::vector<std::shared_ptr<Device>> collect(std::vector<pollfd>& descriptors);

  struct Known {
    const Device* device;
    std::weak_ptr<Device> alive;
  };

  std::mutex mutex_;  // guards known_
  std::vector<Known> known_;
  BlockingWait wake_;
};

}  // namespace diwarp::bridge
