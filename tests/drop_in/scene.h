// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "drop_in/random/loopback.h"
#include "support/catch.h"

/// Objects of libibverbs and librdmacm, as tests make them: each lives as long as its owner.
namespace drop_in {

/// Longer than anything takes on the slowest machine.
inline constexpr std::chrono::seconds kPatience(30);

struct Closing {
  void operator()(ibv_context* one) const { CHECK(ibv_close_device(one) == 0); }
  void operator()(ibv_pd* one) const { CHECK(ibv_dealloc_pd(one) == 0); }
  void operator()(ibv_mr* one) const { CHECK(ibv_dereg_mr(one) == 0); }
  void operator()(ibv_mw* one) const { CHECK(ibv_dealloc_mw(one) == 0); }
  void operator()(ibv_comp_channel* one) const { CHECK(ibv_destroy_comp_channel(one) == 0); }
  void operator()(ibv_cq* one) const { CHECK(ibv_destroy_cq(one) == 0); }
  void operator()(ibv_srq* one) const { CHECK(ibv_destroy_srq(one) == 0); }
  void operator()(ibv_qp* one) const { CHECK(ibv_destroy_qp(one) == 0); }
  void operator()(ibv_ah* one) const { CHECK(ibv_destroy_ah(one) == 0); }
  void operator()(rdma_event_channel* one) const { rdma_destroy_event_channel(one); }
  void operator()(rdma_cm_id* one) const {
    rdma_destroy_qp(one);
    CHECK(rdma_destroy_id(one) == 0);
  }
};
template <class Object>
using Owner = std::unique_ptr<Object, Closing>;

template <class Object>
Owner<Object> own(Object* made) {
  REQUIRE(made != nullptr);
  return Owner<Object>(made);
}

/// The device on all IPv4 addresses, or another by its place in the list.
inline Owner<ibv_context> open_device(size_t place = 0) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  REQUIRE(list != nullptr);
  Owner<ibv_context> opened = own(ibv_open_device(list[place]));
  ibv_free_device_list(list);
  return opened;
}

/// A device with what most tests need.
struct Scene {
  Owner<ibv_context> context = open_device();
  random_calls::LoopbackGid gid = random_calls::loopback_gid(context.get()).value();
  Owner<ibv_pd> domain = own(ibv_alloc_pd(context.get()));
  Owner<ibv_comp_channel> channel = own(ibv_create_comp_channel(context.get()));
  Owner<ibv_cq> queue = own(ibv_create_cq(context.get(), 256, nullptr, channel.get(), 0));
  std::array<std::byte, 8192> memory{};
  Owner<ibv_mr> region =
      own(ibv_reg_mr(domain.get(), memory.data(), memory.size(),
                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                         IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND));

  ibv_qp_init_attr_ex init(ibv_qp_type type) const {
    ibv_qp_init_attr_ex made{};
    made.send_cq = made.recv_cq = queue.get();
    made.cap = {.max_send_wr = 16,
                .max_recv_wr = 16,
                .max_send_sge = 4,
                .max_recv_sge = 4,
                .max_inline_data = 64};
    made.qp_type = type;
    made.comp_mask = IBV_QP_INIT_ATTR_PD;
    made.pd = domain.get();
    return made;
  }
  Owner<ibv_qp> make_queue_pair(ibv_qp_type type) const {
    ibv_qp_init_attr_ex asked = init(type);
    return own(ibv_create_qp_ex(context.get(), &asked));
  }
  ibv_sge sge(size_t from, size_t length) const {
    return {reinterpret_cast<uintptr_t>(memory.data()) + from, static_cast<uint32_t>(length),
            region->lkey};
  }
  uint64_t address(size_t from) const { return reinterpret_cast<uintptr_t>(memory.data()) + from; }
  void write(size_t from, const char* text) { std::memcpy(&memory[from], text, std::strlen(text)); }
  std::string text(size_t from, size_t length) const {
    return {reinterpret_cast<const char*>(&memory[from]), length};
  }
};

/// The next completion of a queue.
inline ibv_wc wait_for_completion(ibv_cq* queue) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  ibv_wc completion{};
  while (ibv_poll_cq(queue, 1, &completion) == 0)
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  return completion;
}

// --- States.

inline constexpr int kInitRc = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
inline constexpr int kInitUd = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
inline constexpr int kRtrRc = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
inline constexpr int kRtsRc = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                              IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
inline constexpr uint32_t kQKey = 0x1234;

inline ibv_qp_attr attributes_of(const Scene& scene, uint32_t peer) {
  ibv_qp_attr made{};
  made.port_num = 1;
  made.qkey = kQKey;
  made.qp_access_flags =
      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  made.path_mtu = IBV_MTU_1024;
  made.dest_qp_num = peer;
  made.max_dest_rd_atomic = made.max_rd_atomic = 4;
  made.min_rnr_timer = 12;
  made.timeout = 14;
  made.retry_cnt = made.rnr_retry = 7;
  made.ah_attr.is_global = 1;
  made.ah_attr.port_num = 1;
  made.ah_attr.grh.dgid = scene.gid.gid;
  made.ah_attr.grh.sgid_index = scene.gid.index;
  return made;
}

inline int lead(ibv_qp* pair, ibv_qp_attr attributes, ibv_qp_state state, int mask) {
  attributes.qp_state = state;
  return ibv_modify_qp(pair, &attributes, mask);
}

inline ibv_qp_state state_of(ibv_qp* pair) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(pair, &attributes, IBV_QP_STATE, &init) == 0);
  return attributes.qp_state;
}

/// Both get ready to meet each other.
inline void connect(const Scene& scene, ibv_qp* one, ibv_qp* other) {
  for (const auto& [pair, peer] : {std::pair(one, other), std::pair(other, one)}) {
    const ibv_qp_attr attributes = attributes_of(scene, peer->qp_num);
    REQUIRE(lead(pair, attributes, IBV_QPS_INIT, kInitRc) == 0);
    REQUIRE(lead(pair, attributes, IBV_QPS_RTR, kRtrRc) == 0);
    REQUIRE(lead(pair, attributes, IBV_QPS_RTS, kRtsRc) == 0);
  }
}

inline void make_ready_ud(const Scene& scene, ibv_qp* pair) {
  const ibv_qp_attr attributes = attributes_of(scene, 0);
  REQUIRE(lead(pair, attributes, IBV_QPS_INIT, kInitUd) == 0);
  REQUIRE(lead(pair, attributes, IBV_QPS_RTR, IBV_QP_STATE) == 0);
  REQUIRE(lead(pair, attributes, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
}

inline int post_receive(ibv_qp* pair, uint64_t number, ibv_sge sge) {
  ibv_recv_wr request{.wr_id = number, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(pair, &request, &bad);
}

inline Owner<ibv_ah> own_handle(const Scene& scene) {
  ibv_ah_attr attributes = attributes_of(scene, 0).ah_attr;
  return own(ibv_create_ah(scene.domain.get(), &attributes));
}

// --- Events of librdmacm.

/// An event, acknowledged when its owner goes.
struct Acknowledging {
  void operator()(rdma_cm_event* event) const { CHECK(rdma_ack_cm_event(event) == 0); }
};
using CmEvent = std::unique_ptr<rdma_cm_event, Acknowledging>;

inline CmEvent wait_for_event(rdma_event_channel* channel) {
  pollfd watched{channel->fd, POLLIN, 0};
  constexpr int kMilliseconds = 30'000;
  REQUIRE(::poll(&watched, 1, kMilliseconds) == 1);
  rdma_cm_event* event = nullptr;
  REQUIRE(rdma_get_cm_event(channel, &event) == 0);
  return CmEvent(event);
}

inline Owner<rdma_cm_id> make_id(rdma_event_channel* channel, rdma_port_space space = RDMA_PS_TCP) {
  rdma_cm_id* made = nullptr;
  REQUIRE(rdma_create_id(channel, &made, nullptr, space) == 0);
  return own(made);
}

}  // namespace drop_in
