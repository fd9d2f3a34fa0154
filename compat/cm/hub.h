// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connection_manager.h>
#include <infiniband/verbs.h>
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace diwarp::compat {

class EventChannel;
class Id;
struct PendingCmEvent;

/// All ids of a process have one channel of the library's. A thread takes its events and leaves
/// each at the channel that its id is on at the moment; so an id changes channels without losing
/// any.
///
/// Ids are named by the library's numbers, which are never used again: an event that is on its way
/// while its id is destroyed finds nothing.
class Hub {
 public:
  /// Of this process: a forked child gets one of its own.
  static Hub& of_process();

  const diwarp::CmEventChannel& channel() const { return channel_; }

  /// `device` is what the id, and requests that come to it, have it from.
  void add(uint64_t number, Id& id, ibv_device* device);
  /// A number for an id that the library does not know, none of the library's.
  uint64_t new_number();
  /// Leaves an event of that number's id at the channel that it is on; one of no id any more goes.
  void post(uint64_t number, PendingCmEvent pending);
  /// No event of that number reaches a channel after that.
  void remove(uint64_t number);
  /// Moves the id, with the events that wait, to another channel.
  void move(Id& id, const std::shared_ptr<EventChannel>& channel);
  std::shared_ptr<EventChannel> channel_of(const Id& id);

 private:
  static constexpr uint64_t kFirstOwn = uint64_t{1} << 63;

  Hub();
  void run();
  void deliver(diwarp::CmEvent event);

  const pid_t process_;
  diwarp::CmEventChannel channel_;
  std::mutex mutex_;  // guards what follows, and which channel an id is on
  struct Known {
    Id* id;
    ibv_device* device;
  };
  std::unordered_map<uint64_t, Known> ids_;
  uint64_t last_own_ = kFirstOwn;
};

}  // namespace diwarp::compat
