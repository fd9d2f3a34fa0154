// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <diwarp/verbs.h>

namespace soak {

/// A queue pair, and what is posted to it.
struct Line {
  enum class State : uint8_t { down, connecting, up, ending };

  uint32_t place = 0;
  diwarp::QpType type = diwarp::QpType::rc;
  uint32_t remote = 0;  ///< RC
  uint32_t remote_life = 0;
  State state = State::down;
  double since = 0;  ///< of that state
  std::optional<diwarp::QueuePair> qp;
  std::optional<diwarp::CmId> id;
  uint32_t sends = 0;
  uint32_t receives = 0;
  uint64_t sent = 0;  ///< RC: numbers of this connection
  uint64_t heard = 0;
  uint64_t immediates_sent = 0;
  uint64_t immediates_heard = 0;
  bool shares = false;  ///< its receives are the shared ones
  uint64_t opened = 0;  ///< how often peers saw another source
};

}  // namespace soak
