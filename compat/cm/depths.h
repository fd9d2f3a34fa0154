// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <cstdint>

#include "compat/common/depth_limit.h"

namespace diwarp::compat {

/// Depths of one side of a connection.
struct Depths {
  uint16_t initiator = kMaxDepth;
  uint16_t responder = kMaxDepth;
};

/// Those that a program asks for. Without parameters, and for 255, they are `otherwise`. Throws
/// Refusal(EINVAL) for more than there are.
Depths depths_of(const rdma_conn_param* parameters, const Depths& otherwise);

}  // namespace diwarp::compat
