// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "compat/cm/ud_groups.h"
#include "compat/cm/ud_request.h"
#include "compat/cm/udp_port.h"

namespace diwarp::compat {

class Id;

/// The steps of an id of RDMA_PS_UDP. It resolves a service to the queue pair that answers for it,
/// or is the service; there is no connection.
class UdId {
 public:
  explicit UdId(Id& id);
  ~UdId();
  UdId(const UdId&) = delete;
  UdId& operator=(const UdId&) = delete;

  // --- Steps. Each throws Refusal or diwarp::Error.

  void bind(const Address& local);
  void resolve_addr(const sockaddr* source, const sockaddr* destination);
  void resolve_route();
  void connect(const rdma_conn_param* parameters);
  void listen();
  void accept(const rdma_conn_param* parameters);
  void reject(std::span<const std::byte> private_data);
  /// Makes the id, and its queue pair with it, a member of a group. An event tells that it is.
  void join(const Address& group, void* program_context, bool receives);
  void leave(const Address& group);
  /// Nothing of it causes an event any more.
  void end();

  /// Of an id that is made for a request.
  void take_request(UdRequest request, const UdId& listener, ibv_device* device);
  /// What ibv_modify_qp() needs on the way to the state that the attributes have; returns the mask.
  int fill_attributes(ibv_qp_attr& attributes) const;

 private:
  void know_device(ibv_device* device);
  void post(rdma_cm_event_type type, int status);
  void listen_on(UdpPort port);
  Address source_of(const Address& peer) const;

  Id& id_;
  const uint64_t number_;
  ibv_device* device_ = nullptr;
  bool bound_ = false;
  std::optional<UdpPort> port_;  // from bind to listen
  Address local_;
  std::optional<Address> service_;  // once resolved
  bool routed_ = false;
  bool asked_ = false;  // the service, which happens once
  std::vector<ibv_device*> listening_;
  std::optional<UdRequest> request_;
  UdGroups groups_;
};

}  // namespace diwarp::compat
