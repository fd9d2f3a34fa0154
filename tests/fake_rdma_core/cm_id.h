// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <diwarp/verbs.h>

#include "fake_rdma_core/cm_channel.h"
#include "fake_rdma_core/cm_ports.h"
#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/objects.h"

namespace fake {

class Qp;

/// An id of rdma_cm. Its state follows the events as they happen, while its public members change
/// when the program fetches them, as those of librdmacm do.
class CmId : public rdma_cm_id, public Counted {
 public:
  CmId(CmChannel& its_channel, void* its_context, rdma_port_space space);
  /// For a request that came to `listener`.
  CmId(CmId& listener, CmRecord&& record);
  /// Waits until all its events are acknowledged.
  ~CmId();

  Acknowledgements acknowledgements;

  void bind(const sockaddr* local);
  void resolve_addr(const sockaddr* source, const sockaddr* peer);
  void resolve_route();
  void connect(const rdma_conn_param* parameters);
  void listen(int backlog);
  void accept(const rdma_conn_param* parameters);
  void reject(std::span<const std::byte> private_data);
  void disconnect();

  /// By the channel's thread, with the channel's lock. False: the event is none for the program.
  bool take_note(const CmRecord& record);
  /// The program fetches an event of this type.
  void deliver(rdma_cm_event_type type);

 private:
  enum class State : uint8_t {
    idle,
    bound,
    resolving,
    addr_resolved,
    route_resolving,
    route_resolved,
    connecting,
    listening,
    requested,
    connected,
    ended,
    removed,
  };

  static State state_after(rdma_cm_event_type type, State before);

  void expect(State wanted) const;
  void bind_to(const diwarp::Address& local);
  void listen_on(Adapter& adapter, int backlog);
  void fail_to_resolve();
  void show_addresses();
  /// What the program gave, or where it gave nothing the most that both sides have: allowed with a
  /// queue pair of the id's own, else refused with EINVAL.
  const rdma_conn_param& parameters_or_most(const rdma_conn_param* parameters) const;
  /// The queue pair that the program names; refuses with EINVAL where there is none.
  Qp& queue_pair(const rdma_conn_param& parameters);

  const uint64_t serial_;
  Use use_;
  std::atomic<State> state_{State::idle};
  Adapter* adapter_ = nullptr;  // null: all of them, or none yet
  std::optional<diwarp::Address> local_;
  std::optional<diwarp::Address> peer_;
  std::optional<PortReservation> port_;
  std::vector<diwarp::CmId> inners_;  // one, but for a listener on all devices
  rdma_conn_param most_ = {};
  uint32_t qp_number_ = 0;  // of the queue pair that has its connection
};

}  // namespace fake
