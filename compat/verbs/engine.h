// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>
#include <diwarp/event_queue.h>
#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "compat/verbs/long_waits.h"
#include "compat/verbs/meeting_numbers.h"

namespace diwarp::compat {

/// An object that the device has asynchronous events about, as the event thread reaches it.
class EventTarget {
 public:
  /// With the engine's lock.
  virtual void on_async_event(ibv_event_type type) = 0;

 protected:
  ~EventTarget() = default;
};

/// A device of the library's, and the thread that hands out its asynchronous events. It begins with
/// the first object that needs it, so that a program may open a device and then fork, and lives as
/// long as the process: no event may find it gone.
class Engine {
 public:
  /// Throws diwarp::Error.
  explicit Engine(const Address& address);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const diwarp::Device& device() const { return device_; }
  /// One step of the device, by this thread. Returns how much was done.
  size_t serve() { return device_.progress(); }
  /// False in a forked child, which needs an engine of its own.
  bool of_this_process() const;

  LongWaits& long_waits() { return long_waits_; }
  MeetingNumbers& meeting_numbers() { return meeting_numbers_; }

  /// Names an object in events: queue pairs by their numbers, others by a number from here. The
  /// removal does nothing in a forked child: the event thread may have had the lock at the fork.
  void add_queue_pair(uint32_t number, EventTarget& target);
  void remove_queue_pair(uint32_t number);
  uint64_t add_object(EventTarget& target);
  void remove_object(uint64_t number);

 private:
  void run();
  void dispatch(const AsyncEvent& event);

  const pid_t process_;
  diwarp::Device device_;
  diwarp::EventQueue events_;
  LongWaits long_waits_;
  MeetingNumbers meeting_numbers_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint32_t, EventTarget*> queue_pairs_;
  std::unordered_map<uint64_t, EventTarget*> objects_;
  uint64_t last_object_ = 0;
};

}  // namespace diwarp::compat
