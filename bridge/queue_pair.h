// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "bridge/async_events.h"
#include "bridge/device.h"
#include "bridge/device_queues.h"
#include "provider/queue_pair.h"

namespace diwarp::bridge {

class Connection;

/// Tunable: how long a device has to flush what a queue pair in error holds. siw forgets requests
/// that are posted while the connection ends.
inline constexpr Duration kFlushPatience = std::chrono::milliseconds(500);

/// An RC queue pair of a device.
class QueuePair final : public provider::QueuePair,
                        public provider::RcOperations,
                        public AsyncSubject,
                        public Timed,
                        public std::enable_shared_from_this<QueuePair> {
 public:
  /// Throws Error.
  static std::shared_ptr<QueuePair> make(std::shared_ptr<ProtectionDomain> domain,
                                         const provider::QueuePairInit& init);
  ~QueuePair() override;

  std::error_code post_sends(std::span<const SendWorkRequest> requests,
                             size_t& posted) noexcept override;
  std::error_code post_all_sends(std::span<const SendWorkRequest> requests) noexcept override;
  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                             size_t& posted) noexcept override;
  void modify(QpState to) override;
  void set_remote_access(Access accesses) override;
  QpState state() const override { return state_; }
  uint32_t number() const override { return number_; }
  Address local_address() override;
  QueuePairAttributes query() override;
  provider::RcOperations* rc() override { return this; }

  void modify_to_rtr(const StreamAttributes& stream) override;
  void await_peer(const NamedPeer& peer) override;
  void limit_peer_wait(Duration timeout) override;
  std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options) override;
  std::vector<std::byte> connect_on(int descriptor, const ConnectOptions& options) override;
  std::vector<std::byte> accept_on(int descriptor, const AcceptOptions& options,
                                   Duration timeout) override;
  void disconnect(const DisconnectOptions& options) override;
  bool wait_disconnected(Duration timeout) override;

  void on_async_event(ibv_event_type type, const void* object) override;

  Time deadline() const override { return flush_at_; }
  /// The device had its time: what it has not flushed is flushed here.
  void on_deadline() override;

  Device& device() const { return parts_.domain->device(); }
  bool has_shared_receives() const { return parts_.srq != nullptr; }

  // --- For connections, with the device's mutex.

  /// Throws Error(invalid_state) unless it is in init and no connection has it.
  void attach(const std::shared_ptr<Connection>& connection);
  /// It did not come to a connection: in init still. `tried`: the device was asked for it.
  void detach(bool tried);
  void established();
  /// The connection ends in order: nothing is posted any more.
  void closing();
  /// True when the device is done with all that was posted.
  bool sends_idle();
  /// The connection has ended; `peer_closed`: in order, and nothing here asked for it.
  void ended(bool peer_closed);

 private:
  QueuePair(QueuePairParts parts, const provider::QueuePairInit& init);
  void set_state(QpState to);
  void enter_error();
  void reset();
  void renew();
  void replace(std::unique_ptr<DeviceQueues>& fresh);
  void tell_fatal(std::error_code status);
  std::error_code post_recv(uint64_t wr_id, std::span<ibv_sge> sges) noexcept;
  std::error_code add_flushed(const SendWorkRequest& request) noexcept;
  std::error_code add_flushed(const ReceiveWorkRequest& request) noexcept;
  int send_batch(ibv_send_wr** bad) noexcept;
  std::error_code post_some(std::span<const SendWorkRequest> requests, size_t& posted) noexcept;
  std::error_code prepare(const SendWorkRequest& request, size_t index,
                          std::unique_lock<std::mutex>& bindable) noexcept;
  bool has_place();
  std::span<ibv_sge> receive_sges(uint64_t place);

  const QueuePairParts parts_;
  const QueuePairCapacity capacity_;
  const bool signal_all_;
  const bool guards_sends_;  // against SIGPIPE
  const uint32_t reserved_sends_;
  const uint32_t reserved_receives_;
  std::atomic<QpState> state_{QpState::init};
  std::atomic<uint32_t> number_{0};

  // Guarded by the device's mutex.
  std::shared_ptr<Connection> connection_;
  Address local_;
  Address peer_;
  bool fatal_told_ = false;
  Time flush_at_ = Time::max();

  std::mutex send_mutex_;  // a reset takes both
  std::mutex receive_mutex_;
  std::unique_ptr<DeviceQueues> queues_;
  // Of a post: requests that go to the device together.
  std::vector<ibv_send_wr> send_requests_;
  std::vector<ibv_sge> send_sges_;
  std::vector<ibv_sge> receive_sges_;  // of each place of the receive queue
};

/// The queue pair as one of this device's. Throws Error(invalid_argument).
QueuePair& own_queue_pair(provider::QueuePair& queue_pair, const Device& device);

}  // namespace diwarp::bridge
