// SPDX-License-Identifier: Apache-2.0
// Requests: sends, receives, and the newer way of posting.
#include <algorithm>
#include <array>
#include <cstdint>

#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostRequests = 3;
constexpr size_t kMostSges = 100;

/// A list of requests, with all that they point to.
template <class Request>
struct List {
  std::array<Request, kMostRequests> requests{};
  std::array<std::array<ibv_sge, kMostSges>, kMostRequests> sges{};

  bool has(const Request* one) const {
    return std::ranges::any_of(requests, [one](const Request& mine) { return &mine == one; });
  }
};

ibv_sge some_sge(World& world) {
  Randomness& random = world.random;
  const auto length = static_cast<uint32_t>(random.below(random.chance(90) ? 3000 : 300000));
  if (world.regions.empty() || random.chance(10))
    return {random.number(), random.chance(50) ? length : ~0U,
            static_cast<uint32_t>(random.number())};
  const ibv_mr* const region = random.one_of(world.regions);
  const uint64_t from = random.below(region->length);
  return {reinterpret_cast<uintptr_t>(region->addr) + from,
          random.chance(90)
              ? static_cast<uint32_t>(std::min<uint64_t>(length, region->length - from))
              : length,
          region->lkey};
}

/// Memory that the library reads at the call.
ibv_sge inline_sge(World& world) {
  const auto own = world.memory.own();
  const size_t length = world.random.one_of<size_t>({0, 1, 16, 64, 65, 4096});
  return {reinterpret_cast<uintptr_t>(own.data()), static_cast<uint32_t>(length), 0};
}

int some_count(Randomness& random) {
  if (random.chance(90)) return static_cast<int>(random.below(4));
  return random.one_of({-1, 5, static_cast<int>(kMostSges), -1000});
}

template <class Request>
Request* linked(List<Request>& list, size_t count) {
  for (size_t i = 0; i + 1 < count; ++i) list.requests[i].next = &list.requests[i + 1];
  return list.requests.data();
}

// --- What requests name of the peer's.

struct RemoteMemory {
  uint64_t address;
  uint32_t key;
};

RemoteMemory some_remote(World& world) {
  Randomness& random = world.random;
  if (world.regions.empty() || random.chance(15))
    return {random.number(), static_cast<uint32_t>(random.number())};
  const ibv_mr* const region = random.one_of(world.regions);
  const uint64_t from = random.below(region->length) & ~uint64_t{7};
  const bool window = !world.windows.empty() && random.chance(10);
  return {reinterpret_cast<uintptr_t>(region->addr) + from,
          window ? random.one_of(world.windows)->rkey : region->rkey};
}

ibv_mw_bind_info some_binding(World& world) {
  Randomness& random = world.random;
  ibv_mr* const region = random.one_or_null(world.regions);
  if (region == nullptr) return {nullptr, random.number(), random.below(100), 0};
  return {region, reinterpret_cast<uintptr_t>(region->addr) + random.below(region->length),
          random.chance(80) ? 1 + random.below(64) : random.number(),
          static_cast<unsigned>(random.below(128))};
}

/// A queue pair of this process, or what is none.
uint32_t some_destination(World& world) {
  const auto all = world.all_queue_pairs();
  if (!all.empty() && world.random.chance(85)) {
    const ibv_qp* const pair = world.random.one_of(all);
    if (pair->qp_type == IBV_QPT_UD) return pair->qp_num;
  }
  return world.random.one_of({uint32_t{world.closed.udp()}, 0U, 0x10000U, 0xffffffU});
}

uint32_t some_q_key(Randomness& random) {
  return random.one_of({0x1234U, 0x1234U, uint32_t{RDMA_UDP_QKEY}, 0x80000000U, 7U});
}

uint32_t some_window_key(World& world, const ibv_mw* window) {
  if (window == nullptr || world.random.chance(10))
    return static_cast<uint32_t>(world.random.number());
  return ibv_inc_rkey(window->rkey);
}

// --- Sends.

void fill_operands(World& world, ibv_send_wr& request, const ibv_qp* pair) {
  Randomness& random = world.random;
  const RemoteMemory remote = some_remote(world);
  if (pair->qp_type == IBV_QPT_UD && request.opcode != IBV_WR_RDMA_WRITE) {
    request.imm_data = static_cast<uint32_t>(random.number());
    request.wr.ud = {random.one_or_null(world.handles), some_destination(world),
                     some_q_key(random)};
    return;
  }
  switch (request.opcode) {
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      request.wr.atomic = {remote.address, random.number(), random.number(), remote.key};
      return;
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      request.invalidate_rkey = remote.key;
      return;
    case IBV_WR_BIND_MW:
      request.bind_mw.mw = random.one_or_null(world.windows);
      request.bind_mw.rkey = some_window_key(world, request.bind_mw.mw);
      request.bind_mw.bind_info = some_binding(world);
      return;
    default:
      request.wr.rdma = {remote.address, remote.key};
  }
}

ibv_wr_opcode some_opcode(Randomness& random, ibv_qp_type type) {
  if (random.chance(10)) return static_cast<ibv_wr_opcode>(random.below(16));
  if (type == IBV_QPT_UD) return random.one_of({IBV_WR_SEND, IBV_WR_SEND_WITH_IMM});
  return random.one_of({IBV_WR_SEND, IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                        IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
                        IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV, IBV_WR_BIND_MW});
}

unsigned some_flags(Randomness& random) {
  if (random.chance(90)) return static_cast<unsigned>(random.below(8));
  return static_cast<unsigned>(random.below(64));
}

void fill_send(World& world, ibv_send_wr& request, std::span<ibv_sge> sges, const ibv_qp* pair) {
  request.wr_id = world.random.number();
  request.opcode = some_opcode(world.random, pair->qp_type);
  request.send_flags = some_flags(world.random);
  if (world.random.chance(15)) request.send_flags |= IBV_SEND_INLINE;
  const bool is_inline = (request.send_flags & IBV_SEND_INLINE) != 0;
  std::ranges::generate(sges, [&] { return is_inline ? inline_sge(world) : some_sge(world); });
  request.sg_list = sges.data();
  request.num_sge = some_count(world.random);
  fill_operands(world, request, pair);
}

bool post_send(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  ibv_qp* const pair = world.random.one_of(all);
  List<ibv_send_wr> list;
  const size_t count = 1 + world.random.below(kMostRequests);
  for (size_t i = 0; i < count; ++i) fill_send(world, list.requests[i], list.sges[i], pair);
  ibv_send_wr* bad = nullptr;
  const bool posted = succeeded(ibv_post_send(pair, linked(list, count), &bad));
  require(posted ? bad == nullptr : list.has(bad), "bad_wr does not name the request");
  return posted;
}

// --- Receives.

ibv_recv_wr* some_receives(World& world, List<ibv_recv_wr>& list) {
  const size_t count = 1 + world.random.below(kMostRequests);
  for (size_t i = 0; i < count; ++i) {
    std::ranges::generate(list.sges[i], [&] { return some_sge(world); });
    list.requests[i].wr_id = world.random.number();
    list.requests[i].sg_list = list.sges[i].data();
    list.requests[i].num_sge = some_count(world.random);
  }
  return linked(list, count);
}

bool post_recv(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  List<ibv_recv_wr> list;
  ibv_recv_wr* bad = nullptr;
  const bool posted =
      succeeded(ibv_post_recv(world.random.one_of(all), some_receives(world, list), &bad));
  require(posted ? bad == nullptr : list.has(bad), "bad_wr does not name the receive");
  return posted;
}

bool post_shared_recv(World& world) {
  if (world.shared_queues.empty()) return false;
  List<ibv_recv_wr> list;
  ibv_recv_wr* bad = nullptr;
  const bool posted = succeeded(ibv_post_srq_recv(world.random.one_of(world.shared_queues),
                                                  some_receives(world, list), &bad));
  require(posted ? bad == nullptr : list.has(bad), "bad_wr does not name the receive");
  return posted;
}

// --- The newer way.

void build_connected(World& world, ibv_qp_ex* pair) {
  Randomness& random = world.random;
  const RemoteMemory remote = some_remote(world);
  ibv_mw* const window = random.one_or_null(world.windows);
  const ibv_mw_bind_info binding = some_binding(world);
  switch (random.below(8)) {
    case 0:
      return ibv_wr_send(pair);
    case 1:
      return ibv_wr_send_inv(pair, remote.key);
    case 2:
      return ibv_wr_local_inv(pair, remote.key);
    case 3:
      return ibv_wr_rdma_write(pair, remote.key, remote.address);
    case 4:
      return ibv_wr_rdma_read(pair, remote.key, remote.address);
    case 5:
      return ibv_wr_atomic_cmp_swp(pair, remote.key, remote.address, 1, 2);
    case 6:
      return ibv_wr_atomic_fetch_add(pair, remote.key, remote.address, 1);
    default:
      return ibv_wr_bind_mw(pair, window, some_window_key(world, window), &binding);
  }
}

void build_datagram(World& world, ibv_qp_ex* pair) {
  if (world.random.chance(50))
    ibv_wr_send(pair);
  else
    ibv_wr_send_imm(pair, static_cast<uint32_t>(world.random.number()));
  if (world.random.chance(5)) return;
  ibv_wr_set_ud_addr(pair, world.random.one_or_null(world.handles), some_destination(world),
                     some_q_key(world.random));
}

void build_data(World& world, ibv_qp_ex* pair) {
  Randomness& random = world.random;
  const auto own = world.memory.own();
  switch (random.below(4)) {
    case 0: {
      const ibv_sge sge = some_sge(world);
      return ibv_wr_set_sge(pair, sge.lkey, sge.addr, sge.length);
    }
    case 1: {
      std::array<ibv_sge, kMostSges> sges{};
      std::ranges::generate(sges, [&] { return some_sge(world); });
      return ibv_wr_set_sge_list(pair, random.one_of<size_t>({0, 1, 4, 5, sges.size()}),
                                 sges.data());
    }
    case 2:
      return ibv_wr_set_inline_data(pair, own.data(), random.one_of<size_t>({0, 1, 64, 129, 8192}));
    default: {
      const std::array<ibv_data_buf, 3> parts{{{own.data(), 5}, {nullptr, 0}, {own.data(), 50}}};
      return ibv_wr_set_inline_data_list(pair, random.below(4), parts.data());
    }
  }
}

bool build(World& world) {
  const auto all = world.all_queue_pairs();
  if (all.empty()) return false;
  ibv_qp_ex* const pair = ibv_qp_to_qp_ex(world.random.one_of(all));
  if (pair == nullptr) return false;
  ibv_wr_start(pair);
  if (world.random.chance(2)) build_data(world, pair);  // there is no request yet
  for (size_t left = world.random.below(4); left != 0; --left) {
    pair->wr_id = world.random.number();
    pair->wr_flags = some_flags(world.random);
    if (pair->qp_base.qp_type == IBV_QPT_UD)
      build_datagram(world, pair);
    else
      build_connected(world, pair);
    if (world.random.chance(80)) build_data(world, pair);
  }
  if (world.random.chance(90)) return succeeded(ibv_wr_complete(pair));
  ibv_wr_abort(pair);
  return true;
}

constexpr std::array kCalls{
    Call{"ibv_post_send", 100, post_send},
    Call{"ibv_post_recv", 60, post_recv},
    Call{"ibv_post_srq_recv", 15, post_shared_recv},
    Call{"ibv_wr_start", 60, build},
};

}  // namespace

std::span<const Call> post_calls() { return kCalls; }

}  // namespace random_calls
