// SPDX-License-Identifier: Apache-2.0
// Queue pairs: their creation, states, and destruction.
#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "drop_in/random/loopback.h"
#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostQueuePairs = 12;
constexpr int kInitRc = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kInitUd = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr int kRtrRc = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsRc = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                       IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;

// --- Creation.

/// Mostly one of the context.
template <class Object>
Object* fitting(World& world, const std::vector<Object*>& pool, const ibv_context* context) {
  std::vector<Object*> own;
  for (Object* one : pool)
    if (one->context == context) own.push_back(one);
  return world.random.one_or_null(own.empty() || world.random.chance(3) ? pool : own);
}

ibv_qp_type some_type(Randomness& random) {
  if (random.chance(50)) return IBV_QPT_RC;
  if (random.chance(70)) return IBV_QPT_UD;
  return random.one_of({IBV_QPT_UC, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
                        IBV_QPT_DRIVER, static_cast<ibv_qp_type>(0), static_cast<ibv_qp_type>(1),
                        static_cast<ibv_qp_type>(77)});
}

ibv_qp_cap some_capacity(Randomness& random) {
  if (random.chance(80)) return {16, 16, 4, 4, 128};
  return {random.one_of({0U, 1U, 16U, 70000U, ~0U}), random.one_of({0U, 1U, 16U, 70000U, ~0U}),
          random.one_of({0U, 1U, 64U, 65U, ~0U}), random.one_of({0U, 1U, 64U, 65U, ~0U}),
          random.one_of({0U, 64U, 1024U, 1025U, ~0U})};
}

ibv_qp_init_attr_ex some_init(World& world, ibv_pd* domain) {
  ibv_qp_init_attr_ex init{};
  init.qp_context = &world;
  init.send_cq = fitting(world, world.queues, domain->context);
  init.recv_cq = fitting(world, world.queues, domain->context);
  init.srq =
      world.random.chance(15) ? fitting(world, world.shared_queues, domain->context) : nullptr;
  init.cap = some_capacity(world.random);
  init.qp_type = some_type(world.random);
  init.sq_sig_all = world.random.one_of({0, 1, -1});
  return init;
}

bool keep(World& world, ibv_qp* made, const ibv_qp_init_attr_ex& init) {
  if (!made_or_errno(made)) return false;
  require(made->qp_type == IBV_QPT_RC || made->qp_type == IBV_QPT_UD, "a queue pair of no type");
  require(init.send_cq->context == made->context && init.recv_cq->context == made->context,
          "a queue pair has queues of another context");
  require(made->qp_num != 0, "a queue pair has no number");
  world.queue_pairs.push_back(made);
  return true;
}

bool create(World& world) {
  if (world.domains.empty() || world.queue_pairs.size() >= kMostQueuePairs) return false;
  ibv_pd* const domain = world.random.one_of(world.domains);
  ibv_qp_init_attr_ex init = some_init(world, domain);
  // The longer structure begins as the shorter one does.
  ibv_qp* const made = ibv_create_qp(domain, reinterpret_cast<ibv_qp_init_attr*>(&init));
  return keep(world, made, init);
}

uint64_t some_operations(Randomness& random, ibv_qp_type type) {
  if (random.chance(10)) return random.number();
  const uint64_t sends = IBV_QP_EX_WITH_SEND;
  if (type == IBV_QPT_UD) return sends | IBV_QP_EX_WITH_SEND_WITH_IMM;
  return sends | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
         IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
         IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

bool create_extended(World& world) {
  if (world.domains.empty() || world.queue_pairs.size() >= kMostQueuePairs) return false;
  Randomness& random = world.random;
  ibv_pd* const domain = random.one_of(world.domains);
  ibv_qp_init_attr_ex init = some_init(world, domain);
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  if (random.chance(10)) init.comp_mask = static_cast<uint32_t>(random.below(1 << 8));
  init.pd = random.chance(95) ? domain : random.one_or_null(world.domains);
  // With the domain alone the header takes that for right.
  if (init.comp_mask == IBV_QP_INIT_ATTR_PD && init.pd == nullptr) init.pd = domain;
  init.create_flags = random.one_of({0U, 0U, 0U, 1U});
  init.send_ops_flags = some_operations(random, init.qp_type);
  ibv_qp* const made = ibv_create_qp_ex(domain->context, &init);
  return keep(world, made, init);
}

// --- States.

/// Not that of an id's queue pair, which names no port of this process.
uint32_t some_number(World& world) {
  if (!world.queue_pairs.empty() && world.random.chance(70))
    return world.random.one_of(world.queue_pairs)->qp_num;
  return world.random.one_of(
      {0U, uint32_t{world.closed.udp()}, 0x10000U | world.closed.tcp(), 0xffffffU, ~0U});
}

/// Such as a right step has them; it is an RC queue pair's peer that they name.
ibv_qp_attr right_attributes(const LoopbackGid& own, uint32_t peer) {
  ibv_qp_attr made{};
  made.port_num = 1;
  made.qkey = 0x1234;
  made.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  made.path_mtu = IBV_MTU_1024;
  made.dest_qp_num = peer;
  made.max_dest_rd_atomic = 4;
  made.max_rd_atomic = 4;
  made.min_rnr_timer = 12;
  made.timeout = 14;
  made.retry_cnt = 7;
  made.rnr_retry = 7;
  made.ah_attr.is_global = 1;
  made.ah_attr.port_num = 1;
  made.ah_attr.grh.dgid = own.gid;
  made.ah_attr.grh.sgid_index = own.index;
  return made;
}

bool lead(ibv_qp* pair, ibv_qp_attr attributes, ibv_qp_state state, int mask) {
  attributes.qp_state = state;
  return succeeded(ibv_modify_qp(pair, &attributes, mask));
}

bool lead_datagram(ibv_qp* pair, const ibv_qp_attr& attributes) {
  return lead(pair, attributes, IBV_QPS_INIT, kInitUd) &&
         lead(pair, attributes, IBV_QPS_RTR, IBV_QP_STATE) &&
         lead(pair, attributes, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

bool lead_connected(ibv_qp* pair, const ibv_qp_attr& attributes) {
  return lead(pair, attributes, IBV_QPS_INIT, kInitRc) &&
         lead(pair, attributes, IBV_QPS_RTR, kRtrRc) && lead(pair, attributes, IBV_QPS_RTS, kRtsRc);
}

/// One queue pair, over all steps, and where it is one of a connection its peer as well.
bool make_ready(World& world) {
  if (world.queue_pairs.empty()) return false;
  ibv_qp* const pair = world.random.one_of(world.queue_pairs);
  const auto own = loopback_gid(pair->context);
  if (!own) return false;
  if (pair->qp_type == IBV_QPT_UD) return lead_datagram(pair, right_attributes(*own, 0));
  ibv_qp* const peer = world.random.one_of(world.queue_pairs);
  const bool led = lead_connected(pair, right_attributes(*own, peer->qp_num));
  if (peer == pair || peer->qp_type != IBV_QPT_RC) return led;
  return lead_connected(peer, right_attributes(*own, pair->qp_num)) && led;
}

int some_mask(Randomness& random) {
  if (random.chance(10)) return static_cast<int>(random.number());
  int mask = random.one_of({int{IBV_QP_STATE}, kInitRc, kInitUd, kRtrRc, kRtsRc,
                            IBV_QP_STATE | IBV_QP_SQ_PSN, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS});
  if (random.chance(20)) mask ^= 1 << random.below(26);
  return mask;
}

/// Spoils one of them.
void make_wrong(ibv_qp_attr& attributes, Randomness& random) {
  switch (random.below(8)) {
    case 0:
      attributes.port_num = random.one_of<uint8_t>({0, 2, 255});
      return;
    case 1:
      attributes.pkey_index = 1;
      return;
    case 2:
      attributes.path_mtu = static_cast<ibv_mtu>(random.one_of({0, 6, 7}));
      return;
    case 3:
      attributes.ah_attr.grh.sgid_index = random.one_of<uint8_t>({77, 255});
      return;
    case 4:
      attributes.ah_attr.grh.dgid = {};
      return;
    case 5:
      attributes.max_dest_rd_atomic = attributes.max_rd_atomic = 255;
      return;
    case 6:
      attributes.ah_attr.is_global = 0;
      return;
    default:
      attributes.timeout = 255;
  }
}

bool modify(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  ibv_qp* const pair = world.random.one_of(all);
  const auto own = loopback_gid(pair->context);
  ibv_qp_attr attributes = right_attributes(own.value_or(LoopbackGid{}), some_number(world));
  if (world.random.chance(25)) make_wrong(attributes, world.random);
  attributes.qp_state = static_cast<ibv_qp_state>(world.random.below(8));
  attributes.cur_qp_state = static_cast<ibv_qp_state>(world.random.below(8));
  return succeeded(ibv_modify_qp(pair, &attributes, some_mask(world.random)));
}

bool reset(World& world) {
  if (world.queue_pairs.empty()) return false;
  return lead(world.random.one_of(world.queue_pairs), {}, IBV_QPS_RESET, IBV_QP_STATE);
}

bool query(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  const ibv_qp* const pair = world.random.one_of(all);
  const int mask = static_cast<int>(world.random.number());
  if (!succeeded(ibv_query_qp(const_cast<ibv_qp*>(pair), &attributes, mask, &init))) return false;
  require(init.send_cq == pair->send_cq && init.qp_type == pair->qp_type,
          "a queue pair is not what it was made as");
  return true;
}

bool destroy_one(World& world) {
  if (world.queue_pairs.empty()) return false;
  destroy(world, world.random.one_of(world.queue_pairs));
  return true;
}

constexpr std::array kCalls{
    Call{"ibv_create_qp", 14, create},      Call{"ibv_create_qp_ex", 14, create_extended},
    Call{"ibv_modify_qp", 30, modify},      Call{"ibv_modify_qp, all steps", 20, make_ready},
    Call{"ibv_query_qp", 5, query},         Call{"ibv_modify_qp to reset", 6, reset},
    Call{"ibv_destroy_qp", 9, destroy_one},
};

}  // namespace

std::span<const Call> queue_pair_calls() { return kCalls; }

/// What finds its completion queue full would have the library wait for a while.
static void drain(ibv_cq* queue) {
  constexpr int kBatch = 32;
  std::array<ibv_wc, kBatch> completions{};
  while (ibv_poll_cq(queue, kBatch, completions.data()) > 0) {
  }
}

void destroy(World& world, ibv_qp* queue_pair) {
  acknowledge_async_events(world);
  drain(queue_pair->send_cq);
  drain(queue_pair->recv_cq);
  const int refused = ibv_destroy_qp(queue_pair);
  require(refused == 0 || refused == EBUSY, "a queue pair stays, and not for its groups");
  if (refused != 0) {
    leave_groups(queue_pair);
    require(ibv_destroy_qp(queue_pair) == 0, "a queue pair stays that has left its groups");
  }
  remove(world.queue_pairs, queue_pair);
  require(ibv_destroy_qp(queue_pair) == EINVAL, "a queue pair was destroyed twice");
}

}  // namespace random_calls
