// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace diwarp::compat {

/// Keeps a thread that fetches events from the next one while another thread has not begun with the
/// connection request that was fetched last. `rping -P` needs that: its thread for events leaves a
/// request in one variable, from which another thread takes it. A kernel is seldom as quick as to
/// have the next request by then.
class RequestPace {
 public:
  static constexpr Duration kPatience = std::chrono::milliseconds(100);

  explicit RequestPace(Duration patience = kPatience) : patience_(patience) {}

  /// This request goes to the program.
  void fetched(const void* request) {
    const std::lock_guard lock(mutex_);
    latest_ = request;
  }
  /// The program does something with a request.
  void begun(const void* request) {
    const std::lock_guard lock(mutex_);
    if (latest_ != request) return;
    latest_ = nullptr;
    changed_.notify_all();
  }
  /// Waits for that. A program that lets the time pass for once works in another way, and does not
  /// wait again.
  void wait() {
    std::unique_lock lock(mutex_);
    if (!helps_) return;
    helps_ = changed_.wait_for(lock, patience_, [this] { return latest_ == nullptr; });
  }

 private:
  const Duration patience_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  const void* latest_ = nullptr;
  bool helps_ = true;
};

}  // namespace diwarp::compat
