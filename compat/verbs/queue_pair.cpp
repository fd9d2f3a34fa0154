// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/queue_pair.h"

#include <diwarp/error.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "compat/common/log.h"
#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/receives.h"
#include "compat/verbs/send_requests.h"

namespace diwarp::compat {
namespace {

decltype(ibv_async_event::element) element_of(ibv_qp* qp) {
  decltype(ibv_async_event::element) element{};
  element.qp = qp;
  return element;
}

UseCount* users_of(ibv_srq* srq) { return srq != nullptr ? &srq_of(srq).users : nullptr; }

/// Attributes that lead to a peer without the connection manager.
constexpr int kPeer = IBV_QP_AV | IBV_QP_DEST_QPN;

void check_attributes(const ibv_qp_attr& attributes, int mask) {
  refuse_if((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1, EINVAL);
  refuse_if((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index != 0, EINVAL);
  if ((mask & (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) != 0)
    unsupported("ibv_modify_qp of path migration");
}

}  // namespace

Qp::Qp(Pd& domain, ibv_qp_init_attr& init)
    : QpBlock{},
      domain_(domain),
      of_domain_(&domain.users),
      of_send_cq_(&cq_of(init.send_cq).users),
      of_recv_cq_(&cq_of(init.recv_cq).users),
      of_srq_(users_of(init.srq)),
      events_(context_of(domain.context), element_of(&qp_base)),
      init_(init),
      queue_pair_(domain.domain(), queue_pair_init(init)) {
  init.cap = granted_capacity(init.cap);
  qp_base.context = domain.context;
  qp_base.qp_context = init.qp_context;
  qp_base.pd = &domain;
  qp_base.send_cq = init.send_cq;
  qp_base.recv_cq = init.recv_cq;
  qp_base.srq = init.srq;
  qp_base.qp_num = queue_pair_.number();
  qp_base.qp_type = init.qp_type;
  qp_base.state = IBV_QPS_RESET;
  ::pthread_mutex_init(&qp_base.mutex, nullptr);
  ::pthread_cond_init(&qp_base.cond, nullptr);
  domain_.engine().add_queue_pair(qp_base.qp_num, events_);
}

/// Waits until the program has acknowledged the events that it fetched.
Qp::~Qp() {
  domain_.engine().remove_queue_pair(qp_base.qp_num);
  events_.end();
  ::pthread_cond_destroy(&qp_base.cond);
  ::pthread_mutex_destroy(&qp_base.mutex);
}

Qp& qp_of(ibv_qp* qp) {
  refuse_if(qp == nullptr, EINVAL);
  return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp));
}

// --- States.

ibv_qp_state Qp::current_state() const { return state_of(queue_pair_.state(), step_); }

void Qp::modify(const ibv_qp_attr& attributes, int mask) {
  const std::lock_guard lock(mutex_);
  check_attributes(attributes, mask);
  if ((mask & IBV_QP_CUR_STATE) != 0) refuse_if(attributes.cur_qp_state != current_state(), EINVAL);
  if ((mask & IBV_QP_STATE) != 0) move_to(attributes.qp_state, mask);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) rights_ = attributes.qp_access_flags;
  qp_base.state = current_state();
}

void Qp::move_to(ibv_qp_state state, int mask) {
  if (state == IBV_QPS_RESET) return reset();
  if (state == IBV_QPS_ERR) return fail();
  const ibv_qp_state now = current_state();
  if (state == IBV_QPS_SQD && now == IBV_QPS_RTS) return drain();
  // As part of a connection that the manager makes, or has made.
  const bool connected = now == IBV_QPS_RTS || now == IBV_QPS_SQD;
  if (state == IBV_QPS_RTS && now == IBV_QPS_SQD) return queue_pair_.modify(QpState::rts);
  if (state == IBV_QPS_RTR || state == IBV_QPS_RTS) {
    if (!connected && (mask & kPeer) != 0)
      unsupported("ibv_modify_qp to RTR without the connection manager");
    refuse_if(!connected && now != (state == IBV_QPS_RTR ? IBV_QPS_INIT : IBV_QPS_RTR), EINVAL);
    if (!connected) step_ = state;
    return;
  }
  refuse_if(state != IBV_QPS_INIT || (now != IBV_QPS_RESET && now != IBV_QPS_INIT), EINVAL);
  leave_reset();
}

void Qp::reset() {
  if (queue_pair_.state() == QpState::closing) queue_pair_.modify(QpState::error);
  if (queue_pair_.state() != QpState::reset) queue_pair_.modify(QpState::reset);
  step_ = IBV_QPS_RESET;
}

void Qp::leave_reset() {
  if (queue_pair_.state() == QpState::reset) queue_pair_.modify(QpState::init);
  step_ = IBV_QPS_INIT;
}

void Qp::drain() { queue_pair_.modify(QpState::sqd); }

/// The connection may end, and lead to the same state, at this moment.
void Qp::fail() {
  try {
    if (queue_pair_.state() != QpState::error) queue_pair_.modify(QpState::error);
  } catch (const Error&) {
    if (queue_pair_.state() != QpState::error) throw;
  }
}

void Qp::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) const {
  const QueuePairAttributes known = queue_pair_.query();
  attributes = {};
  attributes.qp_state = attributes.cur_qp_state = current_state();
  attributes.path_mtu = IBV_MTU_4096;
  attributes.qp_access_flags = rights_;
  attributes.cap = granted_capacity(init_.cap);
  attributes.max_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ord, 254));
  attributes.max_dest_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ird, 254));
  attributes.port_num = 1;
  init = init_;
  init.cap = attributes.cap;
}

// --- Requests.

void Qp::post_sends(const ibv_send_wr* request, ibv_send_wr** bad) {
  for (; request != nullptr; request = request->next) {
    *bad = const_cast<ibv_send_wr*>(request);
    const Sges sges(request->sg_list, request->num_sge, domain_.offset_regions);
    const std::error_code error = queue_pair_.post_send(translate(*request, sges.list()));
    if (error) [[unlikely]]
      throw Refusal(errno_of(error));
  }
}

void Qp::post_receives(ibv_recv_wr* request, ibv_recv_wr** bad) {
  *bad = request;
  refuse_if(step_.load(std::memory_order_relaxed) == IBV_QPS_RESET, EINVAL);
  compat::post_receives(queue_pair_, domain_, request, bad);
}

}  // namespace diwarp::compat
