// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/queue_pair.h"

#include <algorithm>
#include <cerrno>

#include "fake_rdma_core/limits.h"
#include "fake_rdma_core/requests.h"
#include "fake_rdma_core/shared_receive_queue.h"
#include "fake_rdma_core/work_completions.h"

namespace fake {
namespace {

ibv_qp_state state_of(diwarp::QpState state) {
  switch (state) {
    case diwarp::QpState::reset:
      return IBV_QPS_RESET;
    case diwarp::QpState::init:
      return IBV_QPS_INIT;
    case diwarp::QpState::rtr:
      return IBV_QPS_RTR;
    case diwarp::QpState::rts:
      return IBV_QPS_RTS;
    case diwarp::QpState::sqd:
    case diwarp::QpState::closing:
      return IBV_QPS_SQD;
    case diwarp::QpState::error:
      return IBV_QPS_ERR;
  }
  return IBV_QPS_UNKNOWN;
}

uint8_t short_depth(uint16_t depth) { return static_cast<uint8_t>(std::min<uint16_t>(depth, 255)); }

ibv_qp_init_attr checked_init(const ibv_qp_init_attr& init) {
  refuse_if(init.qp_type != IBV_QPT_RC, EOPNOTSUPP);
  refuse_if(init.send_cq == nullptr || init.recv_cq == nullptr, EINVAL);
  ibv_qp_init_attr checked = init;
  checked.cap = checked_capacity(init);
  return checked;
}

}  // namespace

ibv_qp_cap checked_capacity(const ibv_qp_init_attr& init) {
  ibv_qp_cap cap = init.cap;
  refuse_if(cap.max_send_wr > kMaxWr || cap.max_recv_wr > kMaxWr, EINVAL);
  refuse_if(cap.max_send_sge > kMaxSge || cap.max_recv_sge > kMaxSge, EINVAL);
  refuse_if(cap.max_inline_data > kMaxInline, EINVAL);
  if (init.srq != nullptr) cap.max_recv_wr = cap.max_recv_sge = 0;
  return cap;
}

Qp::Qp(Pd& its_pd, const ibv_qp_init_attr& init)
    : ibv_qp{},
      init_(checked_init(init)),
      pd_use_(&its_pd.users),
      send_cq_use_(&static_cast<Cq*>(init.send_cq)->users),
      recv_cq_use_(&static_cast<Cq*>(init.recv_cq)->users),
      srq_use_(init.srq == nullptr ? nullptr : &static_cast<Srq*>(init.srq)->users),
      inner_(std::in_place, its_pd.inner, inner_init(init)) {
  inner_->modify(diwarp::QpState::reset);
  context = its_pd.context;
  qp_context = init.qp_context;
  pd = &its_pd;
  send_cq = init.send_cq;
  recv_cq = init.recv_cq;
  srq = init.srq;
  handle = static_cast<uint32_t>(next_serial());
  qp_num = inner_->number();
  state = IBV_QPS_RESET;
  qp_type = init.qp_type;
  pthread_mutex_init(&mutex, nullptr);
  pthread_cond_init(&cond, nullptr);
  Adapter& adapter = context_of(context).adapter;
  const std::lock_guard lock(adapter.mutex);
  adapter.queue_pairs[qp_num] = this;
}

Qp::~Qp() {
  Context& own = context_of(context);
  {
    const std::lock_guard lock(own.adapter.mutex);
    own.adapter.queue_pairs.erase(qp_num);  // nothing completes from here on
  }
  inner_.reset();
  static_cast<Cq*>(send_cq)->purge(*this);
  static_cast<Cq*>(recv_cq)->purge(*this);
  own.async_events.purge([this](const ibv_async_event& event) {
    return element_of(event.event_type) == EventElement::qp && event.element.qp == this;
  });
  acknowledgements.wait();
  pthread_cond_destroy(&cond);
  pthread_mutex_destroy(&mutex);
}

diwarp::QueuePairInit Qp::inner_init(const ibv_qp_init_attr& init) const {
  const ibv_qp_cap& cap = init_.cap;
  diwarp::QueuePairInit result;
  result.send_cq = static_cast<Cq*>(init.send_cq)->inner;
  result.recv_cq = static_cast<Cq*>(init.recv_cq)->inner;
  result.capacity = {.max_send_wr = std::max(cap.max_send_wr, 1u),
                     .max_recv_wr = std::max(cap.max_recv_wr, 1u),
                     .max_send_sge = std::max(cap.max_send_sge, 1u),
                     .max_recv_sge = std::max(cap.max_recv_sge, 1u),
                     .max_inline_data = cap.max_inline_data};
  if (init.srq != nullptr) result.srq = static_cast<Srq*>(init.srq)->inner;
  result.stream.receive_not_ready = diwarp::ReceiveNotReady::terminate;
  return result;
}

int Qp::post_send(ibv_send_wr* first, ibv_send_wr** bad) {
  return post_each(first, bad, [this](const ibv_send_wr& request) { return post_one(request); });
}

int Qp::post_recv(ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_each(first, bad, [this](const ibv_recv_wr& request) { return post_one(request); });
}

/// What is posted then is refused, as siw does it, and not flushed.
bool Qp::is_ending() const {
  const diwarp::QpState now = inner_->state();
  return now == diwarp::QpState::closing || now == diwarp::QpState::error;
}

int Qp::post_one(const ibv_send_wr& request) {
  diwarp::SendWorkRequest translated = send_request(request, pd);
  const Sges sges(context_of(context).adapter, request.sg_list, request.num_sge,
                  init_.cap.max_send_sge, sge_use(request));
  if (request.opcode != IBV_WR_SEND_WITH_IMM) translated.sges = sges.list();
  const bool asked = init_.sq_sig_all != 0 || (request.send_flags & IBV_SEND_SIGNALED) != 0;
  const std::lock_guard lock(mutex_);
  if (is_ending()) return EINVAL;
  if (next_ - retired_ >= init_.cap.max_send_wr) return ENOMEM;
  translated.wr_id = next_;
  sends_.push_back({.wr_id = request.wr_id, .signaled = asked});
  const int error = post_errno(inner_->post_send(translated));
  if (error == 0)
    ++next_;
  else
    sends_.pop_back();
  return error;
}

int Qp::post_one(const ibv_recv_wr& request) {
  if (srq != nullptr) return EINVAL;
  const std::lock_guard lock(mutex_);
  if (is_ending()) return EINVAL;
  if (receives_ >= init_.cap.max_recv_wr) return ENOMEM;
  const int error =
      post_receive(*inner_, context_of(context).adapter, request, init_.cap.max_recv_sge);
  if (error == 0) ++receives_;
  return error;
}

void Qp::modify(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_RESET:
      reset();
      break;
    case IBV_QPS_INIT:
      if (inner_->state() != diwarp::QpState::init) inner_->modify(diwarp::QpState::init);
      break;
    case IBV_QPS_ERR:
      if (inner_->state() != diwarp::QpState::error) inner_->modify(diwarp::QpState::error);
      break;
    default:
      refuse(EINVAL);  // the connection manager's business
  }
  show_state(to);
}

/// A device that is removed moves its queue pairs beside the program.
void Qp::show_state(ibv_qp_state now) {
  const std::lock_guard lock(mutex_);
  state = now;
}

void Qp::reset() {
  inner_->modify(diwarp::QpState::reset);
  {
    const std::lock_guard lock(mutex_);
    sends_.clear();
    first_ = retired_ = next_;
  }
  for (ibv_cq* cq : {send_cq, recv_cq}) {
    static_cast<Cq*>(cq)->drain();
    static_cast<Cq*>(cq)->purge(*this);
  }
  const std::lock_guard lock(mutex_);
  receives_ = 0;
}

void Qp::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  const diwarp::QueuePairAttributes present = inner_->query();
  attributes = {};
  attributes.qp_state = attributes.cur_qp_state = state_of(present.state);
  show_state(attributes.qp_state);
  attributes.cap = init_.cap;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.port_num = 1;
  attributes.max_rd_atomic = short_depth(present.ord);
  attributes.max_dest_rd_atomic = short_depth(present.ird);
  init = init_;
}

bool Qp::has_pending_sends() {
  const std::lock_guard lock(mutex_);
  return !sends_.empty();
}

std::optional<CqEntry> Qp::complete(const diwarp::WorkCompletion& completion) {
  if (is_receive(completion)) return complete_receive(completion);
  return complete_send(completion);
}

std::optional<CqEntry> Qp::complete_send(const diwarp::WorkCompletion& completion) {
  const std::lock_guard lock(mutex_);
  const uint64_t position = completion.wr_id;
  if (position < first_ || sends_.empty()) return std::nullopt;  // posted before a reset
  const Send send = sends_.front();                              // they complete in order
  sends_.pop_front();
  ++first_;
  const bool good = completion.status == diwarp::WcStatus::success;
  if (good && !send.signaled) return std::nullopt;
  CqEntry entry = {.wc = work_completion(completion), .qp = this, .solicited = !good};
  entry.wc.wr_id = send.wr_id;
  entry.of_send_queue = true;
  entry.position = position;
  return entry;
}

CqEntry Qp::complete_receive(const diwarp::WorkCompletion& completion) {
  const bool good = completion.status == diwarp::WcStatus::success;
  if (good && srq != nullptr) static_cast<Srq*>(srq)->take_note_of_receive();
  return {
      .wc = work_completion(completion), .qp = this, .solicited = !good || completion.solicited};
}

void Qp::retire(const CqEntry& entry) {
  const std::lock_guard lock(mutex_);
  if (entry.of_send_queue)
    retired_ = std::max(retired_, entry.position + 1);
  else if (receives_ > 0)
    --receives_;
}

}  // namespace fake
