// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>

#include "compat/common/fetch_queue.h"
#include "compat/common/use_count.h"
#include "compat/verbs/device.h"

namespace diwarp::compat {

/// A context as programs get it. It grows at its front, from one version of rdma-core to the next;
/// `newer` are functions that its newest header has and Debian 12's has not.
struct ContextBlock {
  static constexpr size_t kNewerFunctions = 6;

  std::array<void*, kNewerFunctions> newer{};
  verbs_context verbs{};
};

/// An asynchronous event on its way to the program. `target` is the queue pair or shared receive
/// queue, which counts what is fetched.
struct FetchableAsyncEvent {
  ibv_async_event event{};
  class AsyncEventCounter* counter = nullptr;

  void fetched();
};

/// An object that counts its asynchronous events.
class AsyncEventCounter {
 public:
  virtual void count_fetched_event() = 0;

 protected:
  ~AsyncEventCounter() = default;
};

inline void FetchableAsyncEvent::fetched() { counter->count_fetched_event(); }

/// An opened device. The library's own device begins with the first object that needs it.
class Context : public ContextBlock {
 public:
  explicit Context(Device& device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ibv_context* handle() { return &verbs.context; }
  Device& device() const { return device_; }
  Engine& engine() { return device_.engine(); }

  FetchQueue<FetchableAsyncEvent> async_events;
  UseCount users;  ///< what was made with it

 private:
  Device& device_;
};

/// Throws Refusal(EINVAL) for null.
Context& context_of(ibv_context* context);

}  // namespace diwarp::compat
