// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connection_manager.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "compat/cm/depths.h"
#include "compat/cm/event_channel.h"
#include "compat/cm/port_reservation.h"
#include "compat/common/acknowledgements.h"
#include "compat/common/process.h"

namespace diwarp::compat {

class UdId;

/// One end of a connection that is, or will be, or a listener, as programs get it. The library's id
/// is made when the device is known.
///
/// A synchronous id has a channel of its own, and each of its calls waits for the event that tells
/// what came of it; `event` keeps that until the next one.
class Id : public rdma_cm_id {
 public:
  /// Without a channel it is a synchronous one.
  Id(std::shared_ptr<EventChannel> on, void* program_context, rdma_port_space space);
  /// For a request that `listener` got.
  Id(const Id& listener, diwarp::CmId request, ibv_device* device, const rdma_cm_event& told);
  Id(const Id& listener, UdRequest request, ibv_device* device);
  ~Id();
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;

  // --- Steps of a connection. Each throws Refusal or diwarp::Error.

  void bind(const Address& local);
  void resolve_addr(const sockaddr* source, const sockaddr* destination);
  void resolve_route();
  void connect(const rdma_conn_param* parameters);
  /// Throws Refusal(EINVAL) where connect() has not led to a connection.
  void check_connected() const;
  void listen(int backlog);
  void accept(const rdma_conn_param* parameters);
  void reject(std::span<const std::byte> private_data);
  void disconnect();
  /// Ends all that the library has of it: no event comes any more, and requests are rejected.
  void end();

  /// Of a synchronous id: waits for the event of the last call. Throws Refusal with its status.
  void complete();
  void acknowledge_kept_event();
  void migrate(rdma_event_channel* to);
  bool synchronous() const { return synchronous_; }
  /// After an event that tells that a connection is there: its addresses.
  void note_addresses();

  const Process process;
  Acknowledgements acknowledgements;
  std::shared_ptr<EventChannel> its_channel;  ///< the hub's lock guards changes

  // What rdma_create_ep() leaves for later.
  std::optional<ibv_qp_init_attr> passive_init;
  std::vector<std::byte> connect_data;

  std::atomic<bool> ipv6_only{false};

  // --- Fields that programs read.

  void set_device(ibv_device* device);
  void set_source(const Address& address);
  void set_destination(const Address& address);

  /// Of an id of RDMA_PS_UDP, which does all its steps; else null.
  UdId* datagram() const { return datagram_.get(); }
  /// Private data of a request or an answer: those that rdma_create_ep() left come first.
  std::vector<std::byte> private_data_of(const rdma_conn_param* parameters) const;

 private:
  diwarp::CmId& engine_id();
  diwarp::CmId& make_engine_id(ibv_device* device);
  diwarp::QueuePair& queue_pair_for(const rdma_conn_param* parameters) const;
  void drop_engine_ids();
  bool chooses_source_to(const Address& peer) const;
  Address listen_on(const Address& local, int backlog);

  bool synchronous_;
  bool bound_ = false;
  Address asked_;                               // by bind(); the port may be 0
  Address local_;                               // that it got
  std::optional<PortReservation> reservation_;  // from bind to listen
  uint32_t connecting_ = 0;                     // number of the queue pair that connect() took
  Depths requested_;                            // the most that accept() can have
  std::mutex engine_mutex_;  // guards changes of engine_ids_ against threads that fetch events
  std::vector<diwarp::CmId> engine_ids_;  // a listener on all addresses has one of each family
  std::unique_ptr<UdId> datagram_;
};

/// Throws Refusal: EINVAL for null or one that was destroyed, ENODEV in a forked child.
Id& id_of(rdma_cm_id* id);
/// One that is destroyed, which is the caller's from then on. In a forked child it is null: the id
/// is left alone, with all that the parent's threads may have held there.
Id* taken_id(rdma_cm_id* id);

}  // namespace diwarp::compat
