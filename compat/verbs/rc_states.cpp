// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/rc_states.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

/// These say which transition is meant, and go with any.
constexpr int kAlways = IBV_QP_STATE | IBV_QP_CUR_STATE;

bool fits(const RcTransition& transition, int mask) {
  const int known = kAlways | transition.required | transition.optional;
  return (mask & transition.required) == transition.required && (mask & ~known) == 0;
}

/// rdma_init_qp_attr() gives no more for iWARP.
bool fits_connection_manager(ibv_qp_state from, ibv_qp_state to, int mask) {
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT && (mask & IBV_QP_ACCESS_FLAGS) == 0)
    return false;
  return (mask & ~(kAlways | IBV_QP_ACCESS_FLAGS)) == 0;
}

/// A connection of the manager's has led it further than its program knows.
bool is_there_already(ibv_qp_state from, ibv_qp_state to) {
  const bool connected = from == IBV_QPS_RTS || from == IBV_QPS_SQD;
  return connected && (to == IBV_QPS_INIT || to == IBV_QPS_RTR || to == IBV_QPS_RTS);
}

}  // namespace

void check_rc_transition(ibv_qp_state from, ibv_qp_state to, int mask, bool named) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return refuse_if((mask & ~kAlways) != 0, EINVAL);
  if (!named && (fits_connection_manager(from, to, mask) || is_there_already(from, to))) return;
  const auto found =
      std::find_if(kRcTransitions.begin(), kRcTransitions.end(),
                   [&](const RcTransition& one) { return one.from == from && one.to == to; });
  refuse_if(found == kRcTransitions.end() || !fits(*found, mask), EINVAL);
}

Duration peer_patience(const ibv_qp_attr& attributes) {
  constexpr Duration kLeast = std::chrono::seconds(10);
  if (attributes.timeout == 0) return Duration::max();
  const Duration once(int64_t{4096} << attributes.timeout);
  return std::max(kLeast, once * (attributes.retry_cnt + 1));
}

}  // namespace diwarp::compat
