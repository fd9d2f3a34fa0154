// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace diwarp::compat {

class UdQp;

/// The UDP port of queue pairs that are in groups: a group has members with many queue pair
/// numbers, and messages to it name none (docs/drop-in.md).
inline constexpr uint16_t kGroupPort = 17471;

/// The queue pair of a group's member. Throws Refusal for one that cannot be in groups.
UdQp& group_member(ibv_qp* qp);

}  // namespace diwarp::compat
