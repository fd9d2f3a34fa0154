// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

/// What contexts hand out of the exported functions.
namespace fake {

ibv_context_ops operations();
int fake_op_query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t size);

}  // namespace fake
