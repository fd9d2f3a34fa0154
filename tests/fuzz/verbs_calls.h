// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/error.h"
#include "diwarp/types.h"

namespace diwarp::fuzz {

/// A call that the verbs refuse is not done; nothing else may be thrown.
template <class Call>
bool accepted(Call&& call) {
  try {
    call();
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// The opcode of the completion that a request has.
inline WcOpcode completes_as(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::rdma_write:
      return WcOpcode::rdma_write;
    case WrOpcode::rdma_read:
    case WrOpcode::rdma_read_with_invalidate:
      return WcOpcode::rdma_read;
    case WrOpcode::immediate:
      return WcOpcode::immediate;
    case WrOpcode::fetch_add:
      return WcOpcode::fetch_add;
    case WrOpcode::compare_swap:
      return WcOpcode::compare_swap;
    case WrOpcode::swap:
      return WcOpcode::swap;
    case WrOpcode::local_invalidate:
      return WcOpcode::local_invalidate;
    case WrOpcode::bind_window:
      return WcOpcode::bind_window;
    case WrOpcode::register_memory:
      return WcOpcode::register_memory;
    case WrOpcode::write_record:
      return WcOpcode::write_record;
    default:
      return WcOpcode::send;
  }
}

}  // namespace diwarp::fuzz
