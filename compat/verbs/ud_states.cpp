// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/ud_states.h"

#include <algorithm>
#include <cerrno>

#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

/// These say which transition is meant, and go with any.
constexpr int kAlways = IBV_QP_STATE | IBV_QP_CUR_STATE;

bool fits(const UdTransition& transition, int mask) {
  const int known = kAlways | transition.required | transition.optional;
  return (mask & transition.required) == transition.required && (mask & ~known) == 0;
}

}  // namespace

void check_ud_transition(ibv_qp_state from, ibv_qp_state to, int mask) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return refuse_if((mask & ~kAlways) != 0, EINVAL);
  const auto found =
      std::find_if(kUdTransitions.begin(), kUdTransitions.end(),
                   [&](const UdTransition& one) { return one.from == from && one.to == to; });
  refuse_if(found == kUdTransitions.end() || !fits(*found, mask), EINVAL);
}

}  // namespace diwarp::compat
