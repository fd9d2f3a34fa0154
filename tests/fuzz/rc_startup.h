// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fuzz/input.h"
#include "mpa/negotiated_parameters.h"

namespace diwarp::fuzz {

/// The agreement of diwarp and the peer by MPA's start-up frames.
struct RcStart {
  bool initiator = true;  ///< diwarp is
  mpa::NegotiatedParameters parameters = {};
};

/// Plays the start-up as the input has it: which side diwarp is, what both propose, and what is
/// wrong with the peer's frame. Nothing where there is no connection then. The control path, which
/// does the same over sockets, calls the same functions.
std::optional<RcStart> start_up(Input& in);

}  // namespace diwarp::fuzz
