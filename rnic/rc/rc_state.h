// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/types.h"

/// The states of an RC queue pair, as its connection has them.
namespace diwarp::rnic {

/// Whether a queue pair in this state has a connection that has not ended.
constexpr bool is_connected(QpState state) {
  return state == QpState::rtr || state == QpState::rts || state == QpState::sqd ||
         state == QpState::closing;
}

/// Throws Error(invalid_state) in any other state than init: a queue pair can be connected in no
/// other.
void require_init(QpState state);

}  // namespace diwarp::rnic
