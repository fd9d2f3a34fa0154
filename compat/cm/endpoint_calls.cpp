// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm that do several steps at once, over synchronous ids.
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "compat/cm/event_calls.h"
#include "compat/cm/id.h"
#include "compat/cm/queue_pairs.h"
#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"

namespace diwarp::compat {
namespace {

/// An id that ends, with what it owns, unless it is released.
struct EndpointEnd {
  void operator()(Id* id) const {
    destroy_queue_pair(*id);
    destroy_shared_queue(*id);
    id->end();
    delete id;
  }
};
using Endpoint = std::unique_ptr<Id, EndpointEnd>;

rdma_cm_id* release(Endpoint& endpoint) {
  LiveObjects<Id>::add(endpoint.get());
  return endpoint.release();
}

void make_listener(Id& id, const rdma_addrinfo& address, ibv_pd* pd, const ibv_qp_init_attr* init) {
  refuse_if(length_of(address.ai_src_addr) == 0, EINVAL);
  id.bind(address_of(address.ai_src_addr));
  if (pd != nullptr) id.pd = pd;
  if (init != nullptr) id.passive_init = *init;
}

void keep_connect_data(Id& id, const rdma_addrinfo& address) {
  const auto* const data = static_cast<const std::byte*>(address.ai_connect);
  if (data != nullptr) id.connect_data.assign(data, data + address.ai_connect_len);
}

void make_initiator(Id& id, const rdma_addrinfo& address, ibv_pd* pd, ibv_qp_init_attr* init) {
  refuse_if(length_of(address.ai_dst_addr) == 0, EINVAL);
  id.resolve_addr(address.ai_src_len != 0 ? address.ai_src_addr : nullptr, address.ai_dst_addr);
  id.complete();
  id.resolve_route();
  id.complete();
  if (init != nullptr) {
    init->qp_type = id.qp_type;
    create_queue_pair(id, pd, *init);
  }
  keep_connect_data(id, address);
}

/// The next request, as an id of its own, whose event stays with it.
Endpoint next_request(Id& listener) {
  listener.acknowledge_kept_event();
  rdma_cm_event* const event = fetch_event(*listener.its_channel);
  const int status = event->status;
  if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST || status != 0) {
    acknowledge_event(event);
    throw Refusal(status != 0 ? std::abs(status) : EINVAL);
  }
  Id* const id = &id_of(event->id);
  LiveObjects<Id>::take(id);  // the program does not have it yet
  id->event = event;
  return Endpoint(id);
}

}  // namespace
}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT int rdma_create_ep(rdma_cm_id** id, rdma_addrinfo* address, ibv_pd* pd,
                                        ibv_qp_init_attr* init) {
  return minus_one([&] {
    if (address->ai_qp_type == IBV_QPT_XRC_SEND || address->ai_qp_type == IBV_QPT_XRC_RECV)
      unsupported("rdma_create_ep of an XRC type");
    const bool datagram =
        address->ai_port_space == RDMA_PS_UDP || address->ai_qp_type == IBV_QPT_UD;
    Endpoint made(new Id(nullptr, nullptr, datagram ? RDMA_PS_UDP : RDMA_PS_TCP));
    if ((address->ai_flags & RAI_PASSIVE) != 0)
      make_listener(*made, *address, pd, init);
    else
      make_initiator(*made, *address, pd, init);
    *id = release(made);
  });
}

DIWARP_COMPAT_EXPORT void rdma_destroy_ep(rdma_cm_id* id) {
  quietly([&] { Endpoint{taken_id(id)}; });
}

DIWARP_COMPAT_EXPORT int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** id) {
  return minus_one([&] {
    Id& from = id_of(listener);
    refuse_if(!from.synchronous(), EINVAL);
    Endpoint made = next_request(from);
    if (from.passive_init) {
      ibv_qp_init_attr init = *from.passive_init;
      init.qp_type = made->qp_type;
      create_queue_pair(*made, from.pd, init);
    }
    *id = release(made);
  });
}

}  // extern "C"
