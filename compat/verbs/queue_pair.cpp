// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/queue_pair.h"

#include <diwarp/error.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/rc_attributes.h"
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

diwarp::QueuePair made_queue_pair(Pd& domain, const ibv_qp_init_attr& init, uint32_t number) {
  QueuePairInit parameters = queue_pair_init(init);
  parameters.number = number;
  return diwarp::QueuePair(domain.domain(), parameters);
}

}  // namespace

Qp::Qp(Pd& domain, ibv_qp_init_attr& init, Meets meets)
    : QpBlock{},
      domain_(domain),
      of_domain_(&domain.users),
      of_send_cq_(&cq_of(init.send_cq).users),
      of_recv_cq_(&cq_of(init.recv_cq).users),
      of_srq_(users_of(init.srq)),
      events_(context_of(domain.context), element_of(&qp_base)),
      init_(init),
      number_(meets == Meets::by_name ? &domain.engine().meeting_numbers() : nullptr),
      queue_pair_(made_queue_pair(domain, init, number_.get())) {
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

/// A queue pair whose peer was named is in rts for the library from RTR on, and its program need
/// not know that the peer has gone.
ibv_qp_state Qp::current_state() const {
  const QpState state = queue_pair_.state();
  const ibv_qp_state step = step_;
  if (named_ && state == QpState::rts && step == IBV_QPS_RTR) return step;
  if (named_ && state == QpState::error && !failed_ && !queue_pair_.query().terminate) return step;
  return state_of(state, step);
}

void Qp::modify(const ibv_qp_attr& attributes, int mask) {
  const std::lock_guard lock(mutex_);
  check_rc_attributes(attributes, mask);
  if ((mask & IBV_QP_CUR_STATE) != 0) refuse_if(attributes.cur_qp_state != current_state(), EINVAL);
  if ((mask & IBV_QP_STATE) != 0) move_to(attributes, mask);
  merge_attributes(kept_, attributes, mask);
  qp_base.state = current_state();
}

void Qp::move_to(const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state state = attributes.qp_state;
  const ibv_qp_state now = current_state();
  check_rc_step(state, mask, state == IBV_QPS_RTR ? names_peer(mask) : named_ && now != state);
  if (state == IBV_QPS_RESET) return reset();
  if (state == IBV_QPS_ERR) return fail();
  if (state == IBV_QPS_RTR) return to_rtr(attributes, mask);
  if (state == IBV_QPS_RTS) return to_rts();
  if (state == IBV_QPS_SQD && now == IBV_QPS_RTS) return drain();
  refuse_if(state != IBV_QPS_INIT || (now != IBV_QPS_RESET && now != IBV_QPS_INIT), EINVAL);
  leave_reset();
}

/// A queue pair that the connection manager connects, or has connected, is led on by that alone.
/// One whose peer is named may send in RTR: perftest, which takes that for InfiniBand's, writes its
/// counts of free receives from there.
void Qp::to_rtr(const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state now = current_state();
  if (names_peer(mask)) {
    refuse_if(now != IBV_QPS_INIT, EINVAL);
    queue_pair_.await_peer(named_peer(attributes, context_of(domain_.context).device()));
    named_ = true;
    step_ = IBV_QPS_RTR;
    return queue_pair_.modify(QpState::rts);
  }
  if (!named_ && (now == IBV_QPS_RTS || now == IBV_QPS_SQD)) return;
  refuse_if(now != IBV_QPS_INIT, EINVAL);
  step_ = IBV_QPS_RTR;
}

void Qp::to_rts() {
  const ibv_qp_state now = current_state();
  if (now == IBV_QPS_RTS) return;
  if (now == IBV_QPS_SQD) return queue_pair_.modify(QpState::rts);
  refuse_if(now != IBV_QPS_RTR, EINVAL);
  step_ = IBV_QPS_RTS;
}

void Qp::reset() {
  if (queue_pair_.state() == QpState::closing) queue_pair_.modify(QpState::error);
  if (queue_pair_.state() != QpState::reset) queue_pair_.modify(QpState::reset);
  step_ = IBV_QPS_RESET;
  named_ = false;
  failed_ = false;
  kept_ = {};
  const std::lock_guard lock(flush_mutex_);
  kept_back_.clear();
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
  failed_ = true;
  release_kept_back();
}

void Qp::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  const QueuePairAttributes known = queue_pair_.query();
  const std::lock_guard lock(mutex_);
  attributes = kept_;
  attributes.qp_state = attributes.cur_qp_state = current_state();
  attributes.cap = granted_capacity(init_.cap);
  attributes.port_num = 1;
  if (!named_) {  // what the connection has
    attributes.path_mtu = IBV_MTU_4096;
    attributes.max_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ord, 254));
    attributes.max_dest_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ird, 254));
  }
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

void Qp::post_all_sends(const ibv_send_wr* request, size_t count) {
  std::vector<SendWorkRequest> made;
  std::vector<Sges> sges;
  made.reserve(count);
  sges.reserve(count);
  for (; request != nullptr; request = request->next) {
    sges.emplace_back(request->sg_list, request->num_sge, domain_.offset_regions);
    made.push_back(translate(*request, sges.back().list()));
  }
  if (count > 1) {
    const QueuePairAttributes known = queue_pair_.query();
    refuse_if(known.posted_sends + count > known.capacity.max_send_wr, ENOMEM);
  }
  size_t posted = 0;
  if (const std::error_code error = queue_pair_.post_sends(made, posted))
    throw Refusal(errno_of(error));
}

void Qp::post_receives(ibv_recv_wr* request, ibv_recv_wr** bad) {
  *bad = request;
  refuse_if(step_.load(std::memory_order_relaxed) == IBV_QPS_RESET, EINVAL);
  compat::post_receives(queue_pair_, domain_, request, bad);
}

void Qp::extend(uint64_t operations) {
  extended_ = std::make_unique<ExtendedPosting>(*this, operations);
}

// --- Failures.

bool Qp::tell_failure(const WorkCompletion& completion, ibv_wc& told) {
  bool tells = true;
  LiveObjects<Qp>::find([&](Qp& qp) {
    if (qp.qp_base.qp_num != completion.qp_number || !qp.named_) return false;
    tells = qp.tell(completion, told);
    return true;
  });
  return tells;
}

bool Qp::tell(const WorkCompletion& completion, ibv_wc& told) {
  const bool flushed = completion.status == WcStatus::wr_flush_error;
  const bool receive = completion.opcode == WcOpcode::recv;
  if (failed_) return true;
  if (flushed && receive && !queue_pair_.query().terminate) {
    const std::lock_guard lock(flush_mutex_);
    kept_back_.push_back(told);
    return false;
  }
  failed_ = true;
  if (flushed && !receive && !queue_pair_.query().terminate) told.status = IBV_WC_RETRY_EXC_ERR;
  release_kept_back();
  return true;
}

void Qp::release_kept_back() {
  const std::lock_guard lock(flush_mutex_);
  cq_of(init_.recv_cq).add(kept_back_);
  kept_back_.clear();
}

}  // namespace diwarp::compat
