// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/queue_pair.h"

#include <diwarp/error.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>

#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/receives.h"

namespace diwarp::compat {
namespace {

decltype(ibv_async_event::element) element_of(ibv_qp* qp) {
  decltype(ibv_async_event::element) element{};
  element.qp = qp;
  return element;
}

UseCount* users_of(ibv_srq* srq) { return srq != nullptr ? &srq_of(srq).users : nullptr; }

QueuePairInit numbered(QueuePairInit made, uint32_t number) {
  made.number = number;
  return made;
}

}  // namespace

Qp::Qp(Pd& domain, ibv_qp_init_attr& init, const QueuePairInit& made, MeetingNumbers* numbers)
    : QpBlock{},
      domain_(domain),
      of_domain_(&domain.users),
      of_send_cq_(&cq_of(init.send_cq).users),
      of_recv_cq_(&cq_of(init.recv_cq).users),
      of_srq_(users_of(init.srq)),
      events_(context_of(domain.context), element_of(&qp_base)),
      init_(init),
      number_(numbers),
      queue_pair_(domain.domain(), numbered(made, number_.get())) {
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
  domain_.note_queue_pair();
  domain_.engine().add_queue_pair(qp_base.qp_num, events_);
}

/// Waits until the program has acknowledged the events that it fetched.
Qp::~Qp() {
  domain_.engine().remove_queue_pair(qp_base.qp_num);
  events_.end();
  ::pthread_cond_destroy(&qp_base.cond);
  ::pthread_mutex_destroy(&qp_base.mutex);
}

/// Looks at nothing in the queue pair: it may have been destroyed.
Qp& qp_of(ibv_qp* qp) {
  refuse_if(qp == nullptr, EINVAL);
  return *static_cast<Qp*>(reinterpret_cast<ibv_qp_ex*>(qp));
}

// --- States.

void Qp::reset() {
  if (queue_pair_.state() == QpState::closing) queue_pair_.modify(QpState::error);
  if (queue_pair_.state() != QpState::reset) queue_pair_.modify(QpState::reset);
  step_ = IBV_QPS_RESET;
}

void Qp::leave_reset() {
  if (queue_pair_.state() == QpState::reset) queue_pair_.modify(QpState::init);
  step_ = IBV_QPS_INIT;
}

/// The connection may end, and lead to the same state, at this moment.
void Qp::fail() {
  try {
    if (queue_pair_.state() != QpState::error) queue_pair_.modify(QpState::error);
  } catch (const Error&) {
    if (queue_pair_.state() != QpState::error) throw;
  }
}

// --- Requests.

Sges Qp::sges_of(const ibv_send_wr& request) const {
  const bool inline_data = (request.send_flags & IBV_SEND_INLINE) != 0;
  return {request.sg_list, request.num_sge, inline_data ? nullptr : &domain_.offset_regions};
}

void Qp::post_sends(const ibv_send_wr* request, ibv_send_wr** bad) {
  for (; request != nullptr; request = request->next) {
    *bad = const_cast<ibv_send_wr*>(request);
    const Sges sges = sges_of(*request);
    const std::error_code error = queue_pair_.post_send(translated(*request, sges));
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
    sges.push_back(sges_of(*request));
    made.push_back(translated(*request, sges.back()));
  }
  if (const std::error_code error = queue_pair_.post_all_sends(made))
    throw Refusal(errno_of(error));
}

void Qp::post_receives(ibv_recv_wr* request, ibv_recv_wr** bad) {
  *bad = request;
  refuse_if(step_.load(std::memory_order_relaxed) == IBV_QPS_RESET, EINVAL);
  compat::post_receives(queue_pair_, domain_, request, bad);
}

size_t Qp::max_send_sges() const { return std::max(init_.cap.max_send_sge, uint32_t{1}); }

size_t Qp::max_inline_data() const { return granted_capacity(init_.cap).max_inline_data; }

void Qp::extend(uint64_t operations) {
  extended_ = std::make_unique<ExtendedPosting>(*this, operations);
}

// --- Failures.

/// Queue pairs of two devices may have the same number.
bool Qp::tell_failure(Cq& from, const WorkCompletion& completion, ibv_wc& told) {
  bool tells = true;
  LiveObjects<Qp>::find([&](Qp& qp) {
    const ibv_qp& one = qp.qp_base;
    const bool completes_there = one.send_cq == from.handle() || one.recv_cq == from.handle();
    if (!completes_there || one.qp_num != completion.qp_number) return false;
    tells = qp.tell(completion, told);
    return true;
  });
  return tells;
}

}  // namespace diwarp::compat
