// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm about ids.
#include <diwarp/error.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>

#include "compat/cm/contexts.h"
#include "compat/cm/id.h"
#include "compat/cm/ud_id.h"
#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/common/remote_access.h"
#include "compat/verbs/for_cm.h"

using namespace diwarp::compat;  // NOLINT: the whole file is the outer face

namespace {

void check_space(rdma_port_space space) {
  switch (space) {
    case RDMA_PS_TCP:
    case RDMA_PS_UDP:
      return;
    case RDMA_PS_IPOIB:
      unsupported("rdma_create_id of RDMA_PS_IPOIB");
    case RDMA_PS_IB:
      unsupported("rdma_create_id of RDMA_PS_IB");
  }
  throw Refusal(EINVAL);
}

std::span<const std::byte> bytes_of(const void* data, size_t length) {
  return {static_cast<const std::byte*>(data), data != nullptr ? length : 0};
}

/// Options whose values are taken and make no difference, but one.
void set_id_option(Id& id, int option, const void* value, size_t length) {
  switch (option) {
    case RDMA_OPTION_ID_TOS:
    case RDMA_OPTION_ID_ACK_TIMEOUT:
      return refuse_if(length != sizeof(uint8_t), EINVAL);
    case RDMA_OPTION_ID_REUSEADDR:
      return refuse_if(length != sizeof(int), EINVAL);
    case RDMA_OPTION_ID_AFONLY:
      refuse_if(length != sizeof(int), EINVAL);
      id.ipv6_only = *static_cast<const int*>(value) != 0;
      return;
    default:
      throw Refusal(ENOSYS);
  }
}

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                                        rdma_port_space space) {
  return minus_one([&] {
    check_space(space);
    auto made = std::make_unique<Id>(channel != nullptr ? EventChannel::shared(channel) : nullptr,
                                     context, space);
    LiveObjects<Id>::add(made.get());
    *id = made.release();
  });
}

DIWARP_COMPAT_EXPORT int rdma_destroy_id(rdma_cm_id* id) {
  return minus_one([&] {
    const std::unique_ptr<Id> given(taken_id(id));
    if (given != nullptr) given->end();
  });
}

DIWARP_COMPAT_EXPORT int rdma_bind_addr(rdma_cm_id* id, sockaddr* address) {
  return minus_one([&] {
    refuse_if(length_of(address) == 0, EINVAL);
    id_of(id).bind(address_of(address));
  });
}

DIWARP_COMPAT_EXPORT int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* destination,
                                           int) {
  return minus_one([&] {
    refuse_if(length_of(destination) == 0 || (source != nullptr && length_of(source) == 0), EINVAL);
    id_of(id).resolve_addr(source, destination);
    id_of(id).complete();
  });
}

DIWARP_COMPAT_EXPORT int rdma_resolve_route(rdma_cm_id* id, int) {
  return minus_one([&] {
    id_of(id).resolve_route();
    id_of(id).complete();
  });
}

DIWARP_COMPAT_EXPORT int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  return minus_one([&] {
    id_of(id).connect(parameters);
    id_of(id).complete();
  });
}

/// There is no event that comes before `established` and has to be answered: nothing is left to do.
DIWARP_COMPAT_EXPORT int rdma_establish(rdma_cm_id* id) {
  return minus_one([&] { id_of(id).check_connected(); });
}

DIWARP_COMPAT_EXPORT int rdma_listen(rdma_cm_id* id, int backlog) {
  return minus_one([&] { id_of(id).listen(backlog); });
}

DIWARP_COMPAT_EXPORT int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters) {
  return minus_one([&] {
    id_of(id).accept(parameters);
    // The requester of a UD service is told; here nothing comes of it.
    if (id_of(id).datagram() == nullptr) id_of(id).complete();
  });
}

DIWARP_COMPAT_EXPORT int rdma_reject(rdma_cm_id* id, const void* data, uint8_t length) {
  return minus_one([&] { id_of(id).reject(bytes_of(data, length)); });
}

DIWARP_COMPAT_EXPORT int rdma_disconnect(rdma_cm_id* id) {
  return minus_one([&] {
    id_of(id).disconnect();
    id_of(id).complete();
  });
}

/// Only InfiniBand needs to be told of events.
DIWARP_COMPAT_EXPORT int rdma_notify(rdma_cm_id*, ibv_event_type) { return 0; }

DIWARP_COMPAT_EXPORT int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel) {
  return minus_one([&] { id_of(id).migrate(channel); });
}

DIWARP_COMPAT_EXPORT int rdma_set_option(rdma_cm_id* id, int level, int option, void* value,
                                         size_t length) {
  return minus_one([&] {
    refuse_if(level != RDMA_OPTION_ID, ENOSYS);
    refuse_if(value == nullptr, EINVAL);
    set_id_option(id_of(id), option, value, length);
  });
}

DIWARP_COMPAT_EXPORT __be16 rdma_get_src_port(rdma_cm_id* id) {
  return length_of(&id->route.addr.src_addr) != 0 ? id->route.addr.src_sin.sin_port : 0;
}

DIWARP_COMPAT_EXPORT __be16 rdma_get_dst_port(rdma_cm_id* id) {
  return length_of(&id->route.addr.dst_addr) != 0 ? id->route.addr.dst_sin.sin_port : 0;
}

DIWARP_COMPAT_EXPORT ibv_context** rdma_get_devices(int* count) {
  if (count != nullptr) *count = 0;
  return or_null([&] {
    const std::vector<ibv_device*> devices = shared::listed_devices();
    auto* const list =
        static_cast<ibv_context**>(std::calloc(devices.size() + 1, sizeof(ibv_context*)));
    refuse_if(list == nullptr, ENOMEM);
    std::unique_ptr<ibv_context*, decltype(&std::free)> owner(list, &std::free);
    for (size_t i = 0; i < devices.size(); ++i) list[i] = context_for(devices[i]);
    if (count != nullptr) *count = static_cast<int>(devices.size());
    return owner.release();
  });
}

DIWARP_COMPAT_EXPORT void rdma_free_devices(ibv_context** list) { std::free(list); }

/// As the kernel has it for iWARP: the connection itself leads the queue pair through its states.
DIWARP_COMPAT_EXPORT int rdma_init_qp_attr(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  return minus_one([&] {
    refuse_if(id_of(id).verbs == nullptr, EINVAL);
    const ibv_qp_state state = attributes->qp_state;
    refuse_if(state != IBV_QPS_INIT && state != IBV_QPS_RTR && state != IBV_QPS_RTS, EINVAL);
    *attributes = {};
    attributes->qp_state = state;
    if (const UdId* const datagram = id_of(id).datagram()) {
      *mask = datagram->fill_attributes(*attributes);
      return;
    }
    attributes->qp_access_flags = kConnectedAccess;
    *mask = state == IBV_QPS_RTS ? 0 : IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  });
}

}  // extern "C"
