// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm that make queue pairs and shared receive queues for ids.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "compat/cm/id.h"
#include "compat/cm/queue_pairs.h"
#include "compat/cm/udp_port.h"
#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/log.h"
#include "compat/common/remote_access.h"
#include "compat/verbs/for_cm.h"

namespace diwarp::compat {
namespace {

/// What a function of libibverbs gave: a pointer, or null with errno.
template <class Object>
Object* made(Object* object) {
  refuse_by_errno_if(object == nullptr);
  return object;
}

void destroy_queue(ibv_cq*& queue, ibv_comp_channel*& channel) {
  if (queue != nullptr) ibv_destroy_cq(queue);
  if (channel != nullptr) ibv_destroy_comp_channel(channel);
  queue = nullptr;
  channel = nullptr;
}

void make_queue(rdma_cm_id& id, uint32_t entries, ibv_cq*& queue, ibv_comp_channel*& channel) {
  channel = made(ibv_create_comp_channel(id.verbs));
  queue = made(ibv_create_cq(id.verbs, static_cast<int>(entries), &id, channel, 0));
}

void destroy_queues(rdma_cm_id& id) {
  destroy_queue(id.recv_cq, id.recv_cq_channel);
  destroy_queue(id.send_cq, id.send_cq_channel);
}

/// Completion queues that the program does not bring are made, with channels.
void complete_queues(rdma_cm_id& id, ibv_qp_init_attr_ex& init) {
  const bool other_recv =
      id.recv_cq != nullptr && init.recv_cq != nullptr && id.recv_cq != init.recv_cq;
  const bool other_send =
      id.send_cq != nullptr && init.send_cq != nullptr && id.send_cq != init.send_cq;
  refuse_if(other_recv || other_send, EINVAL);
  if (init.recv_cq == nullptr && id.recv_cq == nullptr && init.cap.max_recv_wr != 0)
    make_queue(id, init.cap.max_recv_wr, id.recv_cq, id.recv_cq_channel);
  if (init.send_cq == nullptr && id.send_cq == nullptr && init.cap.max_send_wr != 0)
    make_queue(id, init.cap.max_send_wr, id.send_cq, id.send_cq_channel);
  if (init.recv_cq == nullptr) init.recv_cq = id.recv_cq;
  if (init.send_cq == nullptr) init.send_cq = id.send_cq;
  // Of a queue without places none was made, and libibverbs wants one.
  if (init.recv_cq == nullptr) init.recv_cq = init.send_cq;
  if (init.send_cq == nullptr) init.send_cq = init.recv_cq;
}

/// By which messages to groups leave: that of the address which the id is bound to.
std::string group_interface(const rdma_cm_id& id) {
  if (id.qp_type != IBV_QPT_UD) return {};
  const Address source = address_of(&id.route.addr.src_addr);
  return is_unspecific(source) ? "" : interface_of(source);
}

void lead_to(ibv_qp* qp, ibv_qp_attr attributes, int mask) {
  refuse_if(ibv_modify_qp(qp, &attributes, IBV_QP_STATE | mask) != 0, EINVAL);
}

/// One of a connection goes to init. A UD queue pair is ready at once.
void lead(const rdma_cm_id& id, ibv_qp* qp) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.qp_access_flags = kConnectedAccess;
  if (qp->qp_type != IBV_QPT_UD) return lead_to(qp, attributes, IBV_QP_ACCESS_FLAGS);
  attributes.port_num = id.port_num;
  attributes.qkey = RDMA_UDP_QKEY;
  lead_to(qp, attributes, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  attributes.qp_state = IBV_QPS_RTR;
  lead_to(qp, attributes, 0);
  attributes.qp_state = IBV_QPS_RTS;
  lead_to(qp, attributes, IBV_QP_SQ_PSN);
}

void check_domain(const rdma_cm_id& id, ibv_qp_init_attr_ex& init) {
  refuse_if(id.verbs == nullptr || id.qp != nullptr || init.qp_type != id.qp_type, EINVAL);
  const bool brought = (init.comp_mask & IBV_QP_INIT_ATTR_PD) != 0 && init.pd != nullptr;
  refuse_if(brought && init.pd->context != id.verbs, EINVAL);
  if (brought) return;
  init.comp_mask |= IBV_QP_INIT_ATTR_PD;
  init.pd = id.pd;
}

}  // namespace

void create_queue_pair(rdma_cm_id& id, ibv_qp_init_attr_ex& init) {
  static_cast<Id&>(id).its_channel->pace.begun(&id);
  ibv_qp_init_attr_ex asked = init;  // what fails leaves the program's as it is
  check_domain(id, asked);
  if (id.srq != nullptr && asked.srq == nullptr) asked.srq = id.srq;
  ibv_qp* qp = nullptr;
  try {
    complete_queues(id, asked);
    qp = shared::create_queue_pair(*id.verbs, asked, group_interface(id));
    lead(id, qp);
  } catch (...) {
    if (qp != nullptr) ibv_destroy_qp(qp);
    destroy_queues(id);
    throw;
  }
  std::memcpy(&init, &asked, offsetof(ibv_qp_init_attr_ex, xrcd));
  id.pd = asked.pd;
  id.qp = qp;
}

void create_queue_pair(rdma_cm_id& id, ibv_pd* pd, ibv_qp_init_attr& init) {
  // The longer structure begins as the shorter one does.
  ibv_qp_init_attr_ex extended{};
  std::memcpy(&extended, &init, sizeof init);
  extended.comp_mask = pd != nullptr ? IBV_QP_INIT_ATTR_PD : 0;
  extended.pd = pd;
  create_queue_pair(id, extended);
  std::memcpy(&init, &extended, sizeof init);
}

void destroy_queue_pair(rdma_cm_id& id) {
  if (id.qp != nullptr) ibv_destroy_qp(id.qp);
  id.qp = nullptr;
  destroy_queues(id);
}

void destroy_shared_queue(rdma_cm_id& id) {
  if (id.srq != nullptr) ibv_destroy_srq(id.srq);
  id.srq = nullptr;
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* init) {
  return minus_one([&] { create_queue_pair(id_of(id), pd, *init); });
}

DIWARP_COMPAT_EXPORT int rdma_create_qp_ex(rdma_cm_id* id, ibv_qp_init_attr_ex* init) {
  return minus_one([&] { create_queue_pair(id_of(id), *init); });
}

DIWARP_COMPAT_EXPORT void rdma_destroy_qp(rdma_cm_id* id) {
  quietly([&] { destroy_queue_pair(id_of(id)); });
}

DIWARP_COMPAT_EXPORT int rdma_create_srq(rdma_cm_id* id, ibv_pd* pd, ibv_srq_init_attr* init) {
  return minus_one([&] {
    Id& of = id_of(id);
    refuse_if(of.srq != nullptr || of.verbs == nullptr, EINVAL);
    ibv_srq* const srq = ibv_create_srq(pd != nullptr ? pd : of.pd, init);
    refuse_by_errno_if(srq == nullptr);
    if (of.pd == nullptr) of.pd = pd;
    of.srq = srq;
  });
}

DIWARP_COMPAT_EXPORT int rdma_create_srq_ex(rdma_cm_id* id, ibv_srq_init_attr_ex* init) {
  const bool basic =
      (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) == 0 || init->srq_type == IBV_SRQT_BASIC;
  if (!basic) {
    errno = log_unsupported("rdma_create_srq_ex of another type than basic");
    return -1;
  }
  const bool brought = (init->comp_mask & IBV_SRQ_INIT_ATTR_PD) != 0;
  // The longer structure begins as the shorter one does.
  return rdma_create_srq(id, brought ? init->pd : nullptr,
                         reinterpret_cast<ibv_srq_init_attr*>(init));
}

DIWARP_COMPAT_EXPORT void rdma_destroy_srq(rdma_cm_id* id) {
  quietly([&] { destroy_shared_queue(id_of(id)); });
}

}  // extern "C"
