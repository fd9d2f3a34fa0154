// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "diwarp/connection_event.h"

/// The connection manager: ids, which do things, and channels, which tell what came of them.
namespace diwarp::rnic {

class CmCore;
class Engine;
class RequestShares;

/// Where the events of ids go. The ids of a channel may be of several devices.
class CmChannel {
 public:
  struct Record {
    CmEventInfo info;
    std::shared_ptr<CmCore> request = nullptr;  ///< connect_request
  };

  /// Nothing after `timeout` (negative: waits for ever). In manual mode steps the ids' devices.
  std::optional<Record> get_event(Duration timeout);
  int descriptor() const { return blocking_wait_.descriptor(); }

  // --- For ids. Any thread, with the baton or without.

  void add_engine(const std::shared_ptr<Engine>& engine);
  void push(Record record);
  /// Takes a request in the place of one to the same listener that gives way to it. Returns that
  /// one, or the request itself where none gives way.
  Record exchange(Record request, const RequestShares& shares);
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
  std::vector<std::weak_ptr<Engine>> engines_;  // of the ids' devices
  BlockingWait blocking_wait_;                  // one wake per record, or more
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

}  // namespace diwarp::rnic
