// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <utility>

#include "rnic/cm/handler_memory.h"

namespace diwarp::rnic {

/// Work for a handler of Asio's, and the thread that waits until it is done. All that is needed
/// lies here, on that thread's stack: destructors wait so, and must not need memory.
class AwaitedWork {
 public:
  /// To be posted, once. Its end tells the waiting thread, whether it was run or not.
  class Handler {
   public:
    using allocator_type = HandlerAllocator<void>;

    explicit Handler(AwaitedWork& owner) : owner_(&owner) {}
    Handler(Handler&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)) {}
    Handler& operator=(Handler&&) = delete;
    ~Handler() {
      if (owner_ != nullptr) owner_->finish();
    }

    allocator_type get_allocator() const { return allocator_type(owner_->memory_); }
    void operator()() { owner_->work_(); }

   private:
    AwaitedWork* owner_;  // null: moved from
  };

  /// `work` must live until wait() returns.
  explicit AwaitedWork(const std::function<void()>& work) : work_(work) {}

  void wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [this] { return done_; });
  }

 private:
  /// Tells with the mutex held: this may be gone right after.
  void finish() {
    const std::lock_guard lock(mutex_);
    done_ = true;
    finished_.notify_one();
  }

  const std::function<void()>& work_;
  HandlerMemory memory_;
  std::mutex mutex_;  // guards done_
  std::condition_variable finished_;
  bool done_ = false;
};

}  // namespace diwarp::rnic
