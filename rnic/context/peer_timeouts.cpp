// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/peer_timeouts.h"

#include <string>

#include "diwarp/error.h"

namespace diwarp::rnic {

namespace {

// The kernel's probes are whole seconds apart, and kUnansweredTries of them have to fit.
constexpr Duration kLeastTimeout = std::chrono::seconds(5);
constexpr Duration kMostTimeout = std::chrono::hours(18);

void check_timeout(const char* what, const std::optional<Duration>& value) {
  if (!value || *value == Duration::zero()) return;
  if (*value >= kLeastTimeout && *value <= kMostTimeout) return;  // guard(silent-peers): => return;
  throw Error(
      make_error_code(Errc::invalid_argument),
      std::string(what) + " must be from 5 seconds to 18 hours, or zero, which switches it off");
}

}  // namespace

void check_timeouts(const PeerTimeoutChoice& choice) {
  check_timeout("keep_alive", choice.keep_alive);
  check_timeout("user_timeout", choice.user_timeout);
}

void check_peer_wait(Duration timeout) {
  if (timeout > Duration::zero()) return;
  throw Error(make_error_code(Errc::invalid_argument),
              "The time to wait for a peer must be above zero");
}

}  // namespace diwarp::rnic
