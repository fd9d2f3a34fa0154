// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "bridge/rdma_core.h"
#include "diwarp/attributes.h"

namespace diwarp::bridge {

class EventQueue;

/// A queue pair, a shared receive queue or an id, for what the device tells of it.
class AsyncSubject {
 public:
  virtual ~AsyncSubject() = default;
  /// `object` is the ibv_qp or ibv_srq that it is about; null: the device.
  virtual void on_async_event(ibv_event_type type, const void* object) = 0;
};

/// The asynchronous events of a device: from its context to the objects that they are about, and on
/// to the application's event queues. Any thread.
class AsyncEvents {
 public:
  AsyncEvents(const RdmaCore& core, ibv_context* context);

  /// -1: the device is gone, and nothing comes any more.
  int descriptor() const { return closed_ ? -1 : context_->async_fd; }
  /// The device was removed.
  bool gone() const { return gone_; }

  void add(EventQueue& queue);
  void remove(EventQueue& queue);
  /// Gives every event queue this event.
  void raise(const AsyncEvent& event);

  /// `object` is an ibv_qp or ibv_srq.
  void add(void* object, const std::weak_ptr<AsyncSubject>& subject);
  void remove(void* object);
  /// Tells every object that the device is gone.
  void tell_all(ibv_event_type type);

  /// Handles the next event of the context. False where there is none.
  bool step();

 private:
  std::shared_ptr<AsyncSubject> subject_of(const ibv_async_event& event);
  void tell_device_event(ibv_event_type type);

  const RdmaCore& core_;
  ibv_context* context_;
  std::atomic<bool> gone_{false};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;  // guards what follows
  std::vector<EventQueue*> queues_;
  std::unordered_map<void*, std::weak_ptr<AsyncSubject>> subjects_;
};

}  // namespace diwarp::bridge
