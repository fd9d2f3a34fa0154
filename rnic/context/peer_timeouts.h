// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"

namespace diwarp::rnic {

/// After how long a connection's peer that answers no more counts as gone; zero: never.
struct PeerTimeouts {
  Duration keep_alive{0};    ///< while nothing is outstanding
  Duration user_timeout{0};  ///< while something is
};

/// The timeouts that a connection wants otherwise than its queue pair.
struct PeerTimeoutChoice {
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};

  PeerTimeouts over(const PeerTimeouts& defaults) const {
    return {keep_alive.value_or(defaults.keep_alive), user_timeout.value_or(defaults.user_timeout)};
  }
};

/// Throws Error(invalid_argument) for times that cannot be kept.
void check_timeouts(const PeerTimeoutChoice& choice);

/// Throws Error(invalid_argument) where there would be no time for a named peer to come.
void check_peer_wait(Duration timeout);

}  // namespace diwarp::rnic
