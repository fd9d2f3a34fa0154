// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "diwarp/connection_event.h"
#include "rnic/engine/blocking_wait.h"

/// The connection manager: ids, which do things, and channels, which tell what came of them.
namespace diwarp::rnic {

class CmCore;
class Control;
class Engine;
class QueuePair;
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

/// One end of a connection that is, or will be, or a listener. No call waits for a peer. As the
/// public calls have them.
class CmId {
 public:
  CmId(std::shared_ptr<Control> control, std::shared_ptr<CmChannel> channel, uint64_t context);
  /// For a request; null where its device is gone.
  static std::shared_ptr<CmId> of_request(std::shared_ptr<CmCore> core);
  /// Rejects what waits for an answer and ends a connection. No event comes any more.
  ~CmId();
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  void resolve_addr(const Address& peer);
  void resolve_route();
  void bind(const Address& local);
  void listen(const ListenOptions& options);
  void connect(QueuePair& queue_pair, const ConnectOptions& options);
  void accept(QueuePair& queue_pair, const AcceptOptions& options);
  void reject(std::span<const std::byte> private_data);
  void disconnect(const DisconnectOptions& options);

  uint64_t number() const;
  uint64_t context() const;
  void set_context(uint64_t context);
  Address local_address() const;
  Address peer_address() const;

 private:
  CmId(std::shared_ptr<Control> control, std::shared_ptr<CmCore> core);

  std::shared_ptr<Control> control_;  // keeps the device
  std::shared_ptr<CmCore> core_;
};

}  // namespace diwarp::rnic
