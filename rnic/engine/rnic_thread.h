// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace diwarp::rnic {

/// The thread that runs an engine while no application thread does.
class RnicThread {
 public:
  RnicThread() = default;
  RnicThread(const RnicThread&) = delete;
  RnicThread& operator=(const RnicThread&) = delete;

  /// Calls `turn` again and again, on processor `cpu` (-1: anywhere), until stop(). Throws
  /// std::system_error where the system has no thread.
  void start(std::function<void()> turn, int cpu);
  /// `wake` makes a turn end that waits.
  void stop(const std::function<void()>& wake);

  bool running() const { return thread_.joinable(); }
  const std::atomic<bool>& stopping() const { return stop_; }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace diwarp::rnic
