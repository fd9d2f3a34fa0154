// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>

#include "bridge/cm_events.h"
#include "bridge/connection.h"
#include "diwarp/connect_options.h"
#include "provider/listener.h"

namespace diwarp::bridge {

/// Throws Error unless the device can have these: what it decides by itself must be left at its
/// default.
void check_options(const Device& device, const ListenOptions& options);

/// Binds and listens. Throws Error.
void begin_listening(const Device& device, rdma_cm_id* id, const Address& local, int backlog);

class ConnectionRequest final : public provider::ConnectionRequest {
 public:
  ConnectionRequest(std::shared_ptr<Device> device, std::shared_ptr<Connection> connection);
  ~ConnectionRequest() override;

  std::span<const std::byte> private_data() const override { return private_data_; }
  Address peer_address() const override { return peer_; }
  /// 0: the device does not tell.
  uint8_t revision() const override { return 0; }
  RequestedDepths depths() const override { return depths_; }
  void accept(provider::QueuePair& queue_pair, const AcceptOptions& options) override;
  void reject(std::span<const std::byte> private_data) override;

 private:
  void require_unanswered() const;

  const std::shared_ptr<Device> device_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::byte> private_data_;
  Address peer_;
  RequestedDepths depths_;
};

class Listener final : public provider::Listener, public CmHandler {
 public:
  /// Throws Error.
  static std::shared_ptr<Listener> open(std::shared_ptr<Device> device, const Address& local,
                                        const ListenOptions& options);
  ~Listener() override;

  std::shared_ptr<provider::ConnectionRequest> get_request(Duration timeout) override;
  Address address() const override { return address_; }

  void on_cm_event(CmNotice notice) override;

 private:
  Listener(std::shared_ptr<Device> device, const ListenOptions& options);

  const std::shared_ptr<Device> device_;
  const size_t max_requests_;
  CmEndpoint endpoint_;
  Address address_;

  // Guarded by the device's mutex.
  std::deque<std::shared_ptr<Connection>> requests_;
  bool gone_ = false;  // the device
};

}  // namespace diwarp::bridge
