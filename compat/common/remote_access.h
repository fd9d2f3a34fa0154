// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

namespace diwarp::compat {

/// What peers may do through a queue pair of a connection: what its memory allows.
inline constexpr unsigned kConnectedAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace diwarp::compat
