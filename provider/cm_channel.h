// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "diwarp/connection_event.h"

namespace diwarp::provider {

class CmChannel;
class CmId;
class Waitable;

/// A number that no other id of the process has, whichever device it is of.
uint64_t next_cm_number();

/// A peer that asks for a connection, while its event waits in a channel.
class CmRequest {
 public:
  virtual ~CmRequest() = default;
  /// The application has got it from `channel`, where events of the id go from now on: returns the
  /// id to answer with, null where its device is gone.
  virtual std::shared_ptr<CmId> fetch(const std::shared_ptr<CmChannel>& channel) = 0;
  /// Nobody will fetch it.
  virtual void drop() = 0;
};

/// Where the events of connection manager ids go. The ids of a channel may be of several devices,
/// and of several providers.
class CmChannel : public std::enable_shared_from_this<CmChannel> {
 public:
  struct Record {
    CmEventInfo info;
    std::shared_ptr<CmRequest> request = nullptr;  ///< connect_request
  };
  struct Event {
    CmEventInfo info;
    std::shared_ptr<CmId> request = nullptr;
  };

  /// Nothing after `timeout` (negative: waits for ever). Moves the ids' devices on meanwhile.
  std::optional<Event> get_event(Duration timeout);
  int descriptor() const { return blocking_wait_.descriptor(); }

  // --- For ids. Any thread.

  /// A device that events come from. It does not keep the device.
  void add(const std::shared_ptr<Waitable>& device);
  void push(Record record);
  /// Takes a record in the place of one that gives way to it: `choose` is given the waiting records
  /// and returns that one, or null. Returns the one that gave way, or `record` itself.
  template <class Choose>
  Record exchange(Record record, Choose choose) {
    const std::lock_guard lock(mutex_);
    Record* const gives_way = closed_ ? nullptr : choose(records_, std::as_const(record));
    if (gives_way != nullptr) std::swap(*gives_way, record);
    return record;
  }
  /// Moves what is about this id, or came to it as a listener, behind what waits in `to`: all of
  /// it, or, where there is no memory (std::bad_alloc), nothing.
  void move_events(uint64_t id, CmChannel& to);
  /// Takes out what is about this id, or came to it as a listener.
  std::vector<Record> purge(uint64_t id);
  /// Nothing is kept from now on.
  std::vector<Record> close();

 private:
  std::optional<Record> pop();
  bool wait(Duration limit);

  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::deque<Record> records_;
  std::vector<std::weak_ptr<Waitable>> devices_;  // of the ids
  BlockingWait blocking_wait_;                    // one wake per record, or more
};

/// A channel's owner.
class CmEventChannel {
 public:
  CmEventChannel() : channel_(std::make_shared<CmChannel>()) {}
  /// Requests that nobody fetched are rejected.
  ~CmEventChannel();
  CmEventChannel(const CmEventChannel&) = delete;
  CmEventChannel& operator=(const CmEventChannel&) = delete;

  const std::shared_ptr<CmChannel>& channel() const { return channel_; }

 private:
  std::shared_ptr<CmChannel> channel_;
};

}  // namespace diwarp::provider
