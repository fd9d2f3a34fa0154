// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "bridge/connection.h"
#include "provider/cm_channel.h"
#include "provider/cm_id.h"

namespace diwarp::bridge {

class CmId final : public provider::CmId,
                   public ConnectionObserver,
                   public AsyncSubject,
                   public std::enable_shared_from_this<CmId> {
 public:
  static std::shared_ptr<CmId> make(std::shared_ptr<Device> device,
                                    std::shared_ptr<provider::CmChannel> channel, uint64_t context);
  ~CmId() override;

  void resolve_addr(const Address& peer) override;
  void resolve_route() override;
  void bind(const Address& local) override;
  void listen(const ListenOptions& options) override;
  void connect(provider::QueuePair& queue_pair, const ConnectOptions& options) override;
  void accept(provider::QueuePair& queue_pair, const AcceptOptions& options) override;
  void reject(std::span<const std::byte> private_data) override;
  void disconnect(const DisconnectOptions& options) override;
  void migrate(std::shared_ptr<provider::CmChannel> channel) override;

  uint64_t number() const override { return number_; }
  uint64_t context() const override { return context_; }
  void set_context(uint64_t context) override { context_ = context; }
  Address local_address() const override;
  Address peer_address() const override;

  void on_connection(CmEventInfo info) override;
  void on_request(CmNotice notice) override;
  void on_async_event(ibv_event_type type, const void* object) override;

 private:
  CmId(std::shared_ptr<Device> device, std::shared_ptr<provider::CmChannel> channel,
       uint64_t context, std::shared_ptr<Connection> connection);
  static void add_to_device(const std::shared_ptr<CmId>& made);
  void require(bool right, const char* what) const;

  const std::shared_ptr<Device> device_;
  const uint64_t number_;
  std::atomic<uint64_t> context_;
  std::shared_ptr<Connection> connection_;

  // Guarded by the device's mutex.
  std::shared_ptr<provider::CmChannel> channel_;
  bool bound_ = false;
  bool listening_ = false;
  Address local_;  // bound_, listening_
  Address peer_;
  size_t max_requests_ = 0;
  bool removal_told_ = false;
  std::shared_ptr<std::atomic<size_t>> waiting_;  // requests that nobody has fetched
};

}  // namespace diwarp::bridge
