// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <string>

namespace diwarp::compat {

/// The library's parameters for those of libibverbs. Throws Refusal for what cannot be had.
QueuePairInit queue_pair_init(const ibv_qp_init_attr& init);
/// The same for a UD queue pair, which sends to groups by `group_interface`, or where that is empty
/// by the one of the system's choice.
QueuePairInit ud_queue_pair_init(const ibv_qp_init_attr& init, const std::string& group_interface);

/// How many requests a queue takes that was asked for so many.
uint32_t granted_requests(uint32_t wanted);
/// What a queue pair has of what was asked for: no less, and some inline data in any case, which
/// programs use that did not ask.
ibv_qp_cap granted_capacity(const ibv_qp_cap& wanted);

/// What libibverbs calls a state. The library's init stands for whatever the program has reached by
/// itself, `step`.
ibv_qp_state state_of(QpState state, ibv_qp_state step);

}  // namespace diwarp::compat
