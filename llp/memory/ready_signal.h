// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <utility>

namespace diwarp::llp {

/// An on_ready callback that one thread sets and others fire. Once set() returned, the callback
/// that it replaced neither runs nor will.
class ReadySignal {
 public:
  void set(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    callback_ = std::move(callback);
  }

  void fire() {
    const std::lock_guard lock(mutex_);
    if (callback_) callback_();
  }

 private:
  std::mutex mutex_;
  std::function<void()> callback_;
};

}  // namespace diwarp::llp
