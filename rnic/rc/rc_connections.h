// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "provider/queue_pair.h"
#include "rnic/context/negotiated_connection.h"

namespace diwarp::rnic {

class RcQueuePair;

/// The public calls that give an RC queue pair, its owner, a connection, and that end it. They
/// block, and are made without the baton.
class RcConnections final : public provider::RcOperations {
 public:
  explicit RcConnections(RcQueuePair& queue_pair) : queue_pair_(queue_pair) {}

  void modify_to_rtr(const StreamAttributes& stream) override;
  void await_peer(const NamedPeer& peer) override;
  void limit_peer_wait(Duration timeout) override;
  std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options) override;
  std::vector<std::byte> connect_on(int descriptor, const ConnectOptions& options) override;
  std::vector<std::byte> accept_on(int descriptor, const AcceptOptions& options,
                                   Duration timeout) override;
  void disconnect(const DisconnectOptions& options) override;
  bool wait_disconnected(Duration timeout) override;

 private:
  std::vector<std::byte> take_over(NegotiatedConnection connection);
  bool wait_ended(Time deadline);

  RcQueuePair& queue_pair_;
};

}  // namespace diwarp::rnic
