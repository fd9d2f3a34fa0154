// SPDX-License-Identifier: Apache-2.0
// Connections, UD services and groups over librdmacm.
#include <poll.h>
#include <rdma/rsocket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "drop_in/random/addresses.h"
#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostIds = 40;  // with those of requests

rdma_conn_param some_parameters(World& world) {
  Randomness& random = world.random;
  rdma_conn_param made{};
  made.private_data = random.chance(90) ? world.memory.own().data() : nullptr;
  made.private_data_len = random.one_of<uint8_t>({0, 0, 16, 255});
  made.initiator_depth = random.one_of<uint8_t>({1, 4, 128, 255, 0, 129});
  made.responder_resources = random.one_of<uint8_t>({1, 4, 128, 255, 0, 129});
  made.rnr_retry_count = 7;
  // Named where an id has none of its own.
  made.qp_num = world.queue_pairs.empty() || random.chance(20)
                    ? static_cast<uint32_t>(random.number())
                    : random.one_of(world.queue_pairs)->qp_num;
  return made;
}

bool connect(World& world) {
  if (world.ids.empty()) return false;
  rdma_conn_param parameters = some_parameters(world);
  return succeeded_or_errno(rdma_connect(world.random.one_of(world.ids),
                                         world.random.chance(90) ? &parameters : nullptr));
}

bool accept(World& world) {
  if (world.ids.empty()) return false;
  rdma_conn_param parameters = some_parameters(world);
  return succeeded_or_errno(
      rdma_accept(world.random.one_of(world.ids), world.random.chance(80) ? &parameters : nullptr));
}

bool reject(World& world) {
  if (world.ids.empty()) return false;
  const bool data = world.random.chance(70);
  return succeeded_or_errno(rdma_reject(world.random.one_of(world.ids),
                                        data ? world.memory.own().data() : nullptr,
                                        world.random.one_of<uint8_t>({0, 16, 255})));
}

bool disconnect(World& world) {
  if (world.ids.empty()) return false;
  return succeeded_or_errno(rdma_disconnect(world.random.one_of(world.ids)));
}

bool establish(World& world) {
  if (world.ids.empty()) return false;
  return succeeded_or_errno(rdma_establish(world.random.one_of(world.ids)));
}

// --- All steps of a client.

bool make_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr init{};
  init.cap = {16, 16, 4, 4, 64};
  init.qp_type = id->qp_type;
  return id->qp != nullptr || succeeded_or_errno(rdma_create_qp(id, nullptr, &init));
}

/// A client with a queue pair, which asks one of this process. That may listen, and fetch its
/// events, or not.
bool ask_listener(World& world) {
  if (world.ids.empty() || world.event_channels.empty() || world.ids.size() >= kMostIds)
    return false;
  const rdma_port_space space = world.random.one_of({RDMA_PS_TCP, RDMA_PS_UDP});
  const auto ports = bound_ports(world, space);
  if (ports.empty()) return false;
  rdma_cm_id* id = nullptr;
  if (!succeeded_or_errno(
          rdma_create_id(world.random.one_of(world.event_channels), &id, nullptr, space)))
    return false;
  world.ids.push_back(id);
  SocketAddress peer("127.0.0.1", world.random.one_of(ports));
  rdma_conn_param parameters{};
  parameters.initiator_depth = parameters.responder_resources = 4;
  return succeeded_or_errno(rdma_resolve_addr(id, nullptr, peer.get(), 1000)) &&
         succeeded_or_errno(rdma_resolve_route(id, 1000)) && make_queue_pair(id) &&
         succeeded_or_errno(rdma_connect(id, &parameters));
}

/// A listener, on a port that is free.
bool make_listener(World& world) {
  if (world.event_channels.empty() || world.ids.size() >= kMostIds) return false;
  rdma_cm_id* id = nullptr;
  if (!succeeded_or_errno(rdma_create_id(world.random.one_of(world.event_channels), &id, &world,
                                         world.random.one_of({RDMA_PS_TCP, RDMA_PS_UDP}))))
    return false;
  world.ids.push_back(id);
  SocketAddress own("127.0.0.1", 0);
  return succeeded_or_errno(rdma_bind_addr(id, own.get())) &&
         succeeded_or_errno(rdma_listen(id, 10));
}

// --- Events.

void answer(World& world, rdma_cm_id* id) {
  world.ids.push_back(id);
  if (world.random.chance(15) || world.ids.size() >= kMostIds) return destroy(world, id);
  if (world.random.chance(30) || !make_queue_pair(id)) return;
  rdma_conn_param parameters{};
  parameters.initiator_depth = parameters.responder_resources = 1;
  succeeded_or_errno(rdma_accept(id, world.random.chance(50) ? &parameters : nullptr));
}

bool is_known(const World& world, const rdma_cm_event& event) {
  const rdma_cm_id* const about =
      event.event == RDMA_CM_EVENT_CONNECT_REQUEST ? event.listen_id : event.id;
  return std::ranges::count(world.ids, about) == 1;
}

bool get_event(World& world) {
  if (world.event_channels.empty()) return false;
  rdma_cm_event* event = nullptr;
  if (!succeeded_or_errno(rdma_get_cm_event(world.random.one_of(world.event_channels), &event)))
    return false;
  require(is_known(world, *event), "an event is about no id");
  rdma_cm_id* const request = event->event == RDMA_CM_EVENT_CONNECT_REQUEST ? event->id : nullptr;
  if (world.random.chance(30))
    world.cm_events.push_back(event);
  else
    require(rdma_ack_cm_event(event) == 0, "an event could not be acknowledged");
  if (request != nullptr) answer(world, request);
  return true;
}

// --- End points.

bool get_request(World& world) {
  if (world.ids.empty() || world.ids.size() >= kMostIds) return false;
  rdma_cm_id* const listener = world.random.one_of(world.ids);
  rdma_cm_id* made = nullptr;
  if (!succeeded_or_errno(rdma_get_request(listener, &made))) return false;
  set_nonblocking(made->channel->fd);
  world.ids.push_back(made);
  return true;
}

bool create_endpoint(World& world) {
  if (world.ids.size() >= kMostIds) return false;
  Randomness& random = world.random;
  const rdma_port_space space = random.one_of({RDMA_PS_TCP, RDMA_PS_UDP});
  SocketAddress own = some_own_address(world);
  SocketAddress peer = some_peer_address(world, space);
  rdma_addrinfo address{};
  address.ai_flags = random.chance(50) ? RAI_PASSIVE : 0;
  address.ai_port_space = space;
  address.ai_qp_type = random.chance(95) ? 0 : IBV_QPT_XRC_SEND;
  address.ai_src_addr = own.get();
  address.ai_src_len = own.get() != nullptr ? own.length() : 0;
  address.ai_dst_addr = peer.get();
  address.ai_dst_len = peer.get() != nullptr ? peer.length() : 0;
  ibv_qp_init_attr init{};
  init.cap = {8, 8, 1, 1, 0};
  rdma_cm_id* made = nullptr;
  if (!succeeded_or_errno(
          rdma_create_ep(&made, &address, nullptr, random.chance(70) ? &init : nullptr)))
    return false;
  set_nonblocking(made->channel->fd);
  world.ids.push_back(made);
  return true;
}

bool destroy_endpoint(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  acknowledge_events_of(world, id);
  acknowledge_async_events(world);
  remove(world.ids, id);
  rdma_destroy_ep(id);
  require(rdma_destroy_id(id) == -1 && errno == EINVAL, "an end point was destroyed twice");
  return true;
}

// --- Groups.

SocketAddress some_group(Randomness& random) {
  switch (random.below(6)) {
    case 0:
      return {"127.0.0.1", 0};
    case 1:
      return {"ff15::77", 0};
    case 2:
      return {};
    default:
      return {random.chance(50) ? "239.255.77.1" : "239.255.77.2", 0};
  }
}

bool join(World& world) {
  if (world.ids.empty()) return false;
  SocketAddress group = some_group(world.random);
  rdma_cm_id* const id = world.random.one_of(world.ids);
  if (world.random.chance(70))
    return succeeded_or_errno(rdma_join_multicast(id, group.get(), &world));
  rdma_cm_join_mc_attr_ex attributes{};
  attributes.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  if (world.random.chance(10)) attributes.comp_mask = 0xff;
  attributes.join_flags = static_cast<uint32_t>(world.random.below(6));
  attributes.addr = group.get();
  return succeeded_or_errno(rdma_join_multicast_ex(id, &attributes, &world));
}

bool leave(World& world) {
  if (world.ids.empty()) return false;
  SocketAddress group = some_group(world.random);
  return succeeded_or_errno(rdma_leave_multicast(world.random.one_of(world.ids), group.get()));
}

/// rsockets are refused by name.
bool rsockets(World& world) {
  require(rsocket(AF_INET, SOCK_STREAM, 0) == -1 && errno == EOPNOTSUPP, "there are rsockets");
  pollfd watched{world.event_channels.empty() ? -1 : world.event_channels[0]->fd, POLLIN, 0};
  return rpoll(&watched, 1, 0) >= 0;
}

constexpr std::array kCalls{
    Call{"rdma_connect", 8, connect},
    Call{"rdma_accept", 5, accept},
    Call{"rdma_reject", 3, reject},
    Call{"rdma_disconnect", 6, disconnect},
    Call{"rdma_establish", 1, establish},
    Call{"a client, all steps", 12, ask_listener},
    Call{"a listener, all steps", 4, make_listener},
    Call{"rdma_get_cm_event", 60, get_event},
    Call{"rdma_get_request", 3, get_request},
    Call{"rdma_create_ep", 3, create_endpoint},
    Call{"rdma_destroy_ep", 3, destroy_endpoint},
    Call{"rdma_join_multicast", 4, join},
    Call{"rdma_leave_multicast", 3, leave},
    Call{"rsocket", 1, rsockets},
};

}  // namespace

std::span<const Call> connection_calls() { return kCalls; }

}  // namespace random_calls
