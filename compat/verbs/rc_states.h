// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <array>

/// The states of RC queue pairs, as ibv_modify_qp() leads through them.
namespace diwarp::compat {

/// A transition with the attributes that it needs and those that it may have.
struct RcTransition {
  ibv_qp_state from;
  ibv_qp_state to;
  int required;
  int optional;
};

/// InfiniBand Architecture, section 11.2.5.2. Any state may go to reset and to error, without
/// attributes. Alternate paths are left out, which nothing here has.
inline constexpr std::array kRcTransitions{
    RcTransition{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                 0},
    RcTransition{IBV_QPS_INIT, IBV_QPS_INIT, 0,
                 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
    RcTransition{IBV_QPS_INIT, IBV_QPS_RTR,
                 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                 IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    RcTransition{IBV_QPS_RTR, IBV_QPS_RTS,
                 IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                     IBV_QP_TIMEOUT,
                 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_RATE_LIMIT},
    RcTransition{IBV_QPS_RTS, IBV_QPS_RTS, 0,
                 IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_RATE_LIMIT},
    RcTransition{IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    RcTransition{IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
    RcTransition{IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
};

/// Throws Refusal(EINVAL) where `mask` does not fit a step from one state to another, or to
/// itself. Without the connection manager it has to fit a transition of the table. With it, as with
/// the kernel's iWARP drivers, states may be named alone, and rights: the connection itself leads
/// the queue pair. `named`: its peer was named by ibv_modify_qp().
///
/// Whether the step can be made is for its caller to say.
void check_rc_transition(ibv_qp_state from, ibv_qp_state to, int mask, bool named);

/// How long a named peer may take to come from RTS on, by the timeout and the retry count: 10 s at
/// least, and for ever where the timeout is 0, as with InfiniBand's acknowledgements.
Duration peer_patience(const ibv_qp_attr& attributes);

}  // namespace diwarp::compat
