// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/rc_queue_pair.h"
#include "compat/common/remote_access.h"

#include <diwarp/error.h>

#include <algorithm>
#include <cerrno>

#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/rc_attributes.h"
#include "compat/verbs/rc_states.h"
#include "compat/verbs/send_requests.h"

namespace diwarp::compat {

RcQp::RcQp(Pd& domain, ibv_qp_init_attr& init, Meets meets)
    : Qp(domain, init, queue_pair_init(init),
         meets == Meets::by_name ? &domain.engine().meeting_numbers() : nullptr) {}

// --- States.

/// A queue pair whose peer was named is in rts for the library from RTR on, and its program need
/// not know that the peer has gone.
ibv_qp_state RcQp::current_state() const {
  const QpState state = queue_pair().state();
  const ibv_qp_state program = step();
  if (named_ && state == QpState::rts && program == IBV_QPS_RTR) return program;
  if (named_ && state == QpState::error && !failed_ && !queue_pair().query().terminate)
    return program;
  return state_of(state, program);
}

void RcQp::modify(const ibv_qp_attr& attributes, int mask) {
  const std::lock_guard lock(modify_mutex());
  check_rc_attributes(attributes, mask);
  const ibv_qp_state now = current_state();
  check_rc_transition(now, (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : now, mask, named_);
  refuse_if((mask & IBV_QP_CUR_STATE) != 0 && attributes.cur_qp_state != now, EINVAL);
  if ((mask & IBV_QP_STATE) != 0) move_to(attributes, mask);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0)
    queue_pair().set_remote_access(access_of(attributes.qp_access_flags));
  merge_attributes(kept_, attributes, mask);
  qp_base.state = current_state();
}

void RcQp::move_to(const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state state = attributes.qp_state;
  const ibv_qp_state now = current_state();
  if (state == IBV_QPS_RESET) return begin_anew();
  if (state == IBV_QPS_ERR) return fail_for_program();
  if (state == IBV_QPS_RTR) return to_rtr(attributes, mask);
  if (state == IBV_QPS_RTS) return to_rts(attributes);
  if (state == IBV_QPS_SQD && now == IBV_QPS_RTS) return queue_pair().modify(QpState::sqd);
  refuse_if(state != IBV_QPS_INIT, EINVAL);
  if (is_led_by_connection()) return;
  refuse_if(now != IBV_QPS_RESET && now != IBV_QPS_INIT, EINVAL);
  leave_reset();
}

/// By the connection manager, further than its program knows.
bool RcQp::is_led_by_connection() const {
  const ibv_qp_state now = current_state();
  return !named_ && (now == IBV_QPS_RTS || now == IBV_QPS_SQD);
}

/// A queue pair that the connection manager connects, or has connected, is led on by that alone.
/// One whose peer is named may send in RTR: perftest, which takes that for InfiniBand's, writes its
/// counts of free receives from there.
void RcQp::to_rtr(const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state now = current_state();
  if (names_peer(mask)) {
    refuse_if(now != IBV_QPS_INIT, EINVAL);
    queue_pair().await_peer(named_peer(attributes, context_of(domain().context).device()));
    named_ = true;
    set_step(IBV_QPS_RTR);
    return queue_pair().modify(QpState::rts);
  }
  if (is_led_by_connection()) return;
  refuse_if(now != IBV_QPS_INIT, EINVAL);
  set_step(IBV_QPS_RTR);
}

void RcQp::to_rts(const ibv_qp_attr& attributes) {
  const ibv_qp_state now = current_state();
  if (now == IBV_QPS_RTS) return;
  if (now == IBV_QPS_SQD) return queue_pair().modify(QpState::rts);
  refuse_if(now != IBV_QPS_RTR, EINVAL);
  if (named_) queue_pair().limit_peer_wait(peer_patience(attributes));
  set_step(IBV_QPS_RTS);
}

void RcQp::begin_anew() {
  reset();
  named_ = false;
  failed_ = false;
  kept_ = {};
  queue_pair().set_remote_access(access_of(kConnectedAccess));
  const std::lock_guard lock(flush_mutex_);
  kept_back_.clear();
}

/// The program knows, and gets what was kept back.
void RcQp::fail_for_program() {
  fail();
  failed_ = true;
  release_kept_back();
}

void RcQp::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  const QueuePairAttributes known = queue_pair().query();
  const std::lock_guard lock(modify_mutex());
  attributes = kept_;
  attributes.qp_state = attributes.cur_qp_state = current_state();
  attributes.cap = granted_capacity(Qp::init().cap);
  attributes.port_num = 1;
  if (!named_) {  // what the connection has
    attributes.path_mtu = IBV_MTU_4096;
    attributes.max_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ord, 254));
    attributes.max_dest_rd_atomic = static_cast<uint8_t>(std::min<uint16_t>(known.ird, 254));
  }
  init = Qp::init();
  init.cap = attributes.cap;
}

// --- Requests.

SendWorkRequest RcQp::translated(const ibv_send_wr& request, const Sges& sges) {
  return translate(request, sges.list(), domain().offset_regions);
}

// --- Failures.

bool RcQp::tell(const WorkCompletion& completion, ibv_wc& told) {
  if (failed_ || !named_) return true;
  const bool flushed = completion.status == WcStatus::wr_flush_error;
  const bool receive = completion.opcode == WcOpcode::recv;
  if (flushed && receive && !queue_pair().query().terminate) {
    const std::lock_guard lock(flush_mutex_);
    kept_back_.push_back(told);
    return false;
  }
  failed_ = true;
  if (flushed && !receive && !queue_pair().query().terminate) told.status = IBV_WC_RETRY_EXC_ERR;
  release_kept_back();
  return true;
}

void RcQp::release_kept_back() {
  const std::lock_guard lock(flush_mutex_);
  cq_of(Qp::init().recv_cq).add(kept_back_);
  kept_back_.clear();
}

}  // namespace diwarp::compat
