// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "provider/cm_id.h"

namespace diwarp::provider {
class CmChannel;
}

namespace diwarp::rnic {

class CmCore;
class Control;

/// One end of a connection that is, or will be, or a listener. No call waits for a peer.
class CmId final : public provider::CmId {
 public:
  CmId(std::shared_ptr<Control> control, std::shared_ptr<provider::CmChannel> channel,
       uint64_t context);
  /// For a request; null where its device is gone.
  static std::shared_ptr<CmId> of_request(std::shared_ptr<CmCore> core);
  ~CmId() override;
  CmId(const CmId&) = delete;
  CmId& operator=(const CmId&) = delete;

  void resolve_addr(const Address& peer) override;
  void resolve_route() override;
  void bind(const Address& local) override;
  void listen(const ListenOptions& options) override;
  void connect(provider::QueuePair& queue_pair, const ConnectOptions& options) override;
  void accept(provider::QueuePair& queue_pair, const AcceptOptions& options) override;
  void reject(std::span<const std::byte> private_data) override;
  void disconnect(const DisconnectOptions& options) override;
  void migrate(std::shared_ptr<provider::CmChannel> channel) override;

  uint64_t number() const override;
  uint64_t context() const override;
  void set_context(uint64_t context) override;
  Address local_address() const override;
  Address peer_address() const override;

 private:
  CmId(std::shared_ptr<Control> control, std::shared_ptr<CmCore> core);
  Address source_of_connection() const;

  std::shared_ptr<Control> control_;  // keeps the device
  std::shared_ptr<CmCore> core_;
};

}  // namespace diwarp::rnic
