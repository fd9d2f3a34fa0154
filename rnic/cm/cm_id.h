// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"

namespace diwarp::rnic {

class CmChannel;
class CmCore;
class Control;
class QueuePair;

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
