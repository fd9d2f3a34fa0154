// SPDX-License-Identifier: Apache-2.0
// Event channels and ids of librdmacm: what needs no peer.
#include <arpa/inet.h>
#include <rdma/rdma_verbs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "drop_in/random/addresses.h"
#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostChannels = 4;
constexpr size_t kMostIds = 16;

// --- Channels.

bool create_channel(World& world) {
  if (world.event_channels.size() >= kMostChannels) return false;
  rdma_event_channel* const made = rdma_create_event_channel();
  if (!made_or_errno(made)) return false;
  set_nonblocking(made->fd);
  world.event_channels.push_back(made);
  return true;
}

/// Ids may be on it, which have no events then until they move to another.
bool destroy_channel(World& world) {
  if (world.event_channels.empty()) return false;
  rdma_event_channel* const channel = world.random.one_of(world.event_channels);
  rdma_destroy_event_channel(channel);
  remove(world.event_channels, channel);
  rdma_destroy_event_channel(channel);  // it has no way to refuse
  rdma_cm_event* event = nullptr;
  require(rdma_get_cm_event(channel, &event) == -1 && errno == EINVAL,
          "a channel that was destroyed gave an event");
  return true;
}

// --- Ids.

bool create_id(World& world) {
  if (world.ids.size() >= kMostIds) return false;
  Randomness& random = world.random;
  const auto space = static_cast<rdma_port_space>(
      random.one_of({int{RDMA_PS_TCP}, int{RDMA_PS_TCP}, int{RDMA_PS_TCP}, int{RDMA_PS_UDP},
                     int{RDMA_PS_UDP}, int{RDMA_PS_IB}, int{RDMA_PS_IPOIB}, 0, 0x1ff}));
  rdma_event_channel* const channel = world.event_channels.empty() || random.chance(10)
                                          ? nullptr
                                          : random.one_of(world.event_channels);
  rdma_cm_id* made = nullptr;
  if (!succeeded_or_errno(rdma_create_id(channel, &made, &world, space))) return false;
  require(space == RDMA_PS_TCP || space == RDMA_PS_UDP, "there is an id of no port space");
  if (channel == nullptr) set_nonblocking(made->channel->fd);
  world.ids.push_back(made);
  return true;
}

bool bind_id(World& world) {
  if (world.ids.empty()) return false;
  SocketAddress address = some_own_address(world);
  return succeeded_or_errno(rdma_bind_addr(world.random.one_of(world.ids), address.get()));
}

bool listen_id(World& world) {
  if (world.ids.empty()) return false;
  return succeeded_or_errno(
      rdma_listen(world.random.one_of(world.ids), world.random.one_of({0, 1, 100, -1})));
}

bool resolve_address(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  SocketAddress source = some_own_address(world);
  SocketAddress peer = some_peer_address(world, id->ps);
  return succeeded_or_errno(rdma_resolve_addr(id, world.random.chance(80) ? nullptr : source.get(),
                                              peer.get(), world.random.one_of({1000, 0, -1})));
}

bool resolve_route(World& world) {
  if (world.ids.empty()) return false;
  return succeeded_or_errno(rdma_resolve_route(world.random.one_of(world.ids), 1000));
}

bool set_option(World& world) {
  if (world.ids.empty()) return false;
  Randomness& random = world.random;
  std::array<int, 4> value{random.one_of({0, 1, -1}), 0, 0, 0};
  return succeeded_or_errno(
      rdma_set_option(world.random.one_of(world.ids), random.one_of({0, 0, 0, 1, 7}),
                      random.one_of({0, 1, 2, 3, 9}), random.chance(95) ? value.data() : nullptr,
                      random.one_of<size_t>({1, 4, 4, 0, 16})));
}

bool query_id(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  rdma_get_src_port(id);
  rdma_get_dst_port(id);
  require(rdma_notify(id, IBV_EVENT_COMM_EST) == 0, "an id was not to be told of an event");
  ibv_qp_attr attributes{};
  attributes.qp_state = static_cast<ibv_qp_state>(world.random.below(8));
  int mask = 0;
  return succeeded_or_errno(rdma_init_qp_attr(id, &attributes, &mask));
}

bool migrate_id(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  acknowledge_events_of(world, id);
  rdma_event_channel* const channel = world.event_channels.empty() || world.random.chance(10)
                                          ? nullptr
                                          : world.random.one_of(world.event_channels);
  if (!succeeded_or_errno(rdma_migrate_id(id, channel))) return false;
  if (channel == nullptr) set_nonblocking(id->channel->fd);
  return true;
}

bool destroy_one(World& world) {
  if (world.ids.empty()) return false;
  destroy(world, world.random.one_of(world.ids));
  return true;
}

// --- What ids own.

ibv_qp_init_attr some_init(World& world, const rdma_cm_id* id) {
  Randomness& random = world.random;
  ibv_qp_init_attr init{};
  init.cap = {16, 16, 4, 4, 64};
  if (random.chance(10)) init.cap.max_send_wr = random.one_of({0U, 70000U, ~0U});
  if (random.chance(10)) init.cap.max_recv_wr = random.one_of({0U, 70000U, ~0U});
  init.qp_type = random.chance(95) ? id->qp_type : IBV_QPT_UC;
  if (random.chance(20)) init.send_cq = random.one_or_null(world.queues);
  if (random.chance(20)) init.recv_cq = random.one_or_null(world.queues);
  return init;
}

bool create_queue_pair(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  ibv_qp_init_attr init = some_init(world, id);
  const ibv_qp_init_attr before = init;
  ibv_pd* const domain =
      world.random.chance(80) ? nullptr : world.random.one_or_null(world.domains);
  const bool made = succeeded_or_errno(rdma_create_qp(id, domain, &init));
  require(made || (init.send_cq == before.send_cq && init.recv_cq == before.recv_cq),
          "rdma_create_qp failed, and changed what it was given");
  return made;
}

bool create_extended_queue_pair(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  const ibv_qp_init_attr basic = some_init(world, id);
  ibv_qp_init_attr_ex init{};
  init.cap = basic.cap;
  init.qp_type = basic.qp_type;
  init.comp_mask = world.random.one_of({0U, 0U, uint32_t{IBV_QP_INIT_ATTR_SEND_OPS_FLAGS}, 0xffU});
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  const bool made = succeeded_or_errno(rdma_create_qp_ex(id, &init));
  require(made || (init.send_cq == nullptr && init.recv_cq == nullptr),
          "rdma_create_qp_ex failed, and changed what it was given");
  return made;
}

bool destroy_queue_pair(World& world) {
  if (world.ids.empty()) return false;
  acknowledge_async_events(world);
  rdma_cm_id* const id = world.random.one_of(world.ids);
  rdma_destroy_qp(id);
  require(id->qp == nullptr && id->send_cq == nullptr && id->recv_cq == nullptr,
          "an id has a queue pair that it destroyed");
  return true;
}

/// Steps with a queue pair that libibverbs has destroyed: they are refused, and look at nothing.
bool destroy_under_id(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  if (id->qp == nullptr) return false;
  acknowledge_async_events(world);
  require(ibv_destroy_qp(id->qp) == 0, "a queue pair of an id's stays");
  rdma_conn_param parameters{};
  require(id->ps == RDMA_PS_UDP || rdma_connect(id, &parameters) == -1,
          "a queue pair that is gone connects");
  require(rdma_accept(id, &parameters) == -1, "a queue pair that is gone accepts");
  rdma_destroy_qp(id);
  return true;
}

bool create_shared_queue(World& world) {
  if (world.ids.empty()) return false;
  rdma_cm_id* const id = world.random.one_of(world.ids);
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = world.random.one_of({16U, 0U}), .max_sge = 2, .srq_limit = 0};
  return succeeded_or_errno(rdma_create_srq(id, nullptr, &init));
}

// --- Addresses.

bool get_address(World& world) {
  Randomness& random = world.random;
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST | (random.chance(40) ? RAI_PASSIVE : 0);
  hints.ai_port_space = random.one_of({0, int{RDMA_PS_TCP}, int{RDMA_PS_UDP}});
  SocketAddress source = some_own_address(world);
  if (random.chance(20)) {
    hints.ai_src_addr = random.chance(90) ? source.get() : nullptr;
    hints.ai_src_len = source.length();
  }
  const std::string port = std::to_string(world.closed.tcp());
  const auto* const service = random.one_of<const char*>({port.c_str(), nullptr});
  rdma_addrinfo* found = nullptr;
  int code = 0;
  if (random.chance(10))  // without hints a name would be looked up
    code = rdma_getaddrinfo(random.one_of<const char*>({"127.0.0.1", nullptr}), service, nullptr,
                            &found);
  else
    code = rdma_getaddrinfo(random.one_of<const char*>({"127.0.0.1", "::1", "no address", nullptr}),
                            service, &hints, &found);
  require((code == 0) == (found != nullptr),
          "rdma_getaddrinfo gave no answer, or one with an error");
  rdma_freeaddrinfo(found);
  return code == 0;
}

constexpr std::array kCalls{
    Call{"rdma_create_event_channel", 5, create_channel},
    Call{"rdma_destroy_event_channel", 1, destroy_channel},
    Call{"rdma_create_id", 20, create_id},
    Call{"rdma_bind_addr", 10, bind_id},
    Call{"rdma_listen", 8, listen_id},
    Call{"rdma_resolve_addr", 16, resolve_address},
    Call{"rdma_resolve_route", 12, resolve_route},
    Call{"rdma_set_option", 3, set_option},
    Call{"rdma_init_qp_attr", 3, query_id},
    Call{"rdma_migrate_id", 5, migrate_id},
    Call{"rdma_destroy_id", 12, destroy_one},
    Call{"rdma_create_qp", 14, create_queue_pair},
    Call{"rdma_create_qp_ex", 6, create_extended_queue_pair},
    Call{"rdma_destroy_qp", 4, destroy_queue_pair},
    Call{"ibv_destroy_qp of an id's", 2, destroy_under_id},
    Call{"rdma_create_srq", 3, create_shared_queue},
    Call{"rdma_getaddrinfo", 4, get_address},
};

/// What a program that ends an id without its queue pair still has of it.
struct LeftBehind {
  ibv_qp* queue_pair;
  std::array<ibv_cq*, 2> queues;
  std::array<ibv_comp_channel*, 2> channels;
  ibv_srq* shared_queue;

  explicit LeftBehind(const rdma_cm_id* id)
      : queue_pair(id->qp),
        queues{id->send_cq, id->recv_cq},
        channels{id->send_cq_channel, id->recv_cq_channel},
        shared_queue(id->srq) {}

  void destroy() const {
    if (queue_pair != nullptr)
      require(ibv_destroy_qp(queue_pair) == 0, "a queue pair outlives its id");
    for (ibv_cq* one : queues)
      if (one != nullptr) require(ibv_destroy_cq(one) == 0, "a completion queue outlives its id");
    for (ibv_comp_channel* one : channels)
      if (one != nullptr) require(ibv_destroy_comp_channel(one) == 0, "a channel outlives its id");
    if (shared_queue != nullptr)
      require(ibv_destroy_srq(shared_queue) == 0, "a shared receive queue outlives its id");
  }
};

}  // namespace

std::span<const Call> id_calls() { return kCalls; }

void acknowledge_events_of(World& world, const rdma_cm_id* id) {
  std::erase_if(world.cm_events, [id](rdma_cm_event* event) {
    if (event->id != id && event->listen_id != id) return false;
    require(rdma_ack_cm_event(event) == 0, "an event could not be acknowledged");
    require(rdma_ack_cm_event(event) == -1 && errno == EINVAL, "an event was acknowledged twice");
    return true;
  });
  // A synchronous id keeps its latest event, which may be one of its listener's.
  for (rdma_cm_id* one : world.ids)
    if (one->event != nullptr && (one == id || one->event->listen_id == id))
      rdma_ack_cm_event(std::exchange(one->event, nullptr));
}

void destroy(World& world, rdma_cm_id* id) {
  acknowledge_events_of(world, id);
  acknowledge_async_events(world);
  if (world.random.chance(75)) {
    rdma_destroy_qp(id);
    rdma_destroy_srq(id);
  }
  const LeftBehind left(id);
  remove(world.ids, id);
  require(rdma_destroy_id(id) == 0, "an id stays");
  require(rdma_destroy_id(id) == -1 && errno == EINVAL, "an id was destroyed twice");
  left.destroy();
}

}  // namespace random_calls
