// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"

namespace diwarp::provider {

class CmChannel;
class QueuePair;

/// As the public class of this name. Its end rejects what waits for an answer and ends a
/// connection; no event comes any more.
class CmId {
 public:
  virtual ~CmId() = default;

  virtual void resolve_addr(const Address& peer) = 0;
  virtual void resolve_route() = 0;
  virtual void bind(const Address& local) = 0;
  virtual void listen(const ListenOptions& options) = 0;
  virtual void connect(QueuePair& queue_pair, const ConnectOptions& options) = 0;
  virtual void accept(QueuePair& queue_pair, const AcceptOptions& options) = 0;
  virtual void reject(std::span<const std::byte> private_data) = 0;
  virtual void disconnect(const DisconnectOptions& options) = 0;
  virtual void migrate(std::shared_ptr<CmChannel> channel) = 0;

  virtual uint64_t number() const = 0;
  virtual uint64_t context() const = 0;
  virtual void set_context(uint64_t context) = 0;
  virtual Address local_address() const = 0;
  virtual Address peer_address() const = 0;
};

}  // namespace diwarp::provider
