// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>

/// The states of UD queue pairs, as ibv_modify_qp() leads through them.
namespace diwarp::compat {

/// A transition with the attributes that it needs and those that it may have.
struct UdTransition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

/// InfiniBand Architecture, section 11.2.5.2. Any state may go to reset and to error, without
/// attributes. SQD is left out: the library does not hold back what is sent over datagrams.
inline constexpr std::array kUdTransitions{
    UdTransition{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
    UdTransition{IBV_QPS_INIT, IBV_QPS_INIT, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
    UdTransition{IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    UdTransition{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    UdTransition{IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY},
};

/// Throws Refusal(EINVAL) where no transition leads there, or `mask` does not fit it.
void check_ud_transition(ibv_qp_state from, ibv_qp_state to, int mask);

}  // namespace diwarp::compat
