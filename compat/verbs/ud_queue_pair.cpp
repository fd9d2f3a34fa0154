// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/ud_queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "compat/common/log.h"
#include "compat/verbs/address_handle.h"
#include "compat/verbs/queue_pair_init.h"
#include "compat/verbs/sges.h"
#include "compat/verbs/ud_requests.h"
#include "compat/verbs/ud_states.h"

namespace diwarp::compat {
namespace {

using std::chrono::steady_clock;

/// How long a queue pair that is destroyed waits for its sends.
constexpr Duration kMostDrain = std::chrono::seconds(1);
constexpr Duration kDrainPause = std::chrono::microseconds(100);

const Address& address_of_handle(const ibv_ah* ah) {
  refuse_if(ah == nullptr, EINVAL);
  return static_cast<const Ah*>(ah)->address();
}

}  // namespace

UdQp::UdQp(Pd& domain, ibv_qp_init_attr& init, Meets meets, const std::string& group_interface)
    : Qp(domain, init, ud_queue_pair_init(init, group_interface), nullptr), meets_(meets) {
  reset();
}

// --- States.

ibv_qp_state UdQp::current_state() const {
  const QpState state = queue_pair().state();
  return state == QpState::rts ? step() : state_of(state, step());
}

void UdQp::modify(const ibv_qp_attr& attributes, int mask) {
  const std::lock_guard lock(modify_mutex());
  const ibv_qp_state now = current_state();
  const ibv_qp_state next = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : now;
  if (next == IBV_QPS_SQD) unsupported("ibv_modify_qp of a UD queue pair to SQD");
  check_ud_transition(now, next, mask);
  refuse_if((mask & IBV_QP_CUR_STATE) != 0 && attributes.cur_qp_state != now, EINVAL);
  refuse_if((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1, EINVAL);
  refuse_if((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index != 0, EINVAL);
  if ((mask & IBV_QP_QKEY) != 0) set_q_key(attributes.qkey);
  if ((mask & IBV_QP_SQ_PSN) != 0) sq_psn_ = attributes.sq_psn;
  move_to(next);
  qp_base.state = current_state();
}

void UdQp::set_q_key(uint32_t q_key) {
  if (q_key == q_key_) return;
  const QpState state = queue_pair().state();
  if (state != QpState::reset && state != QpState::init)
    unsupported("ibv_modify_qp of a Q_Key after RTR");
  queue_pair().set_q_key(q_key);
  q_key_ = q_key;
}

void UdQp::move_to(ibv_qp_state state) {
  if (state == IBV_QPS_RESET) return reset();
  if (state == IBV_QPS_ERR) return fail();
  if (state == IBV_QPS_INIT) return leave_reset();
  if (queue_pair().state() == QpState::init) queue_pair().modify(QpState::rts);
  set_step(state);
}

void UdQp::query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) {
  attributes = {};
  attributes.qp_state = attributes.cur_qp_state = current_state();
  attributes.path_mtu = IBV_MTU_4096;
  attributes.cap = granted_capacity(Qp::init().cap);
  attributes.port_num = 1;
  attributes.qkey = q_key_;
  attributes.sq_psn = sq_psn_;
  init = Qp::init();
  init.cap = attributes.cap;
}

// --- Groups.

void UdQp::join(const Address& group) {
  const std::lock_guard lock(groups_mutex_);
  if (std::find(groups_.begin(), groups_.end(), group) != groups_.end()) return;
  groups_.reserve(groups_.size() + 1);
  queue_pair().join(group);
  groups_.push_back(group);
}

void UdQp::leave(const Address& group) {
  const std::lock_guard lock(groups_mutex_);
  const auto found = std::find(groups_.begin(), groups_.end(), group);
  refuse_if(found == groups_.end(), EINVAL);
  queue_pair().leave(group);
  groups_.erase(found);
}

void UdQp::check_unused() const {
  const std::lock_guard lock(groups_mutex_);
  refuse_if(meets_ == Meets::by_name && !groups_.empty(), EBUSY);
}

// --- Requests.

Address UdQp::destination_of(const ibv_send_wr& request) const {
  if (names_destination(request.opcode))
    return ud_destination(address_of_handle(request.wr.ud.ah), request.wr.ud.remote_qpn);
  const auto last = cq_of(qp_base.recv_cq).last_source(qp_base.qp_num);
  refuse_if(!last, EINVAL);
  return *last;
}

/// In RTR as well: perftest, which takes that for InfiniBand's, writes its counts of free receives
/// from there.
SendWorkRequest UdQp::translated(const ibv_send_wr& request, const Sges& sges) {
  return translate_ud(request, sges.list(), destination_of(request), q_key_);
}

void UdQp::finish_sends() {
  const auto deadline = steady_clock::now() + kMostDrain;
  while (queue_pair().state() == QpState::rts && queue_pair().query().posted_sends != 0 &&
         steady_clock::now() < deadline)
    std::this_thread::sleep_for(kDrainPause);
}

}  // namespace diwarp::compat
