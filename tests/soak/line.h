// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

inline void enter(Line& line, Line::State state, double now) {
  line.state = state;
  line.since = now;
}

/// The library's report on a queue pair, for a reader who looks for the cause of a finding.
std::string describe(const Line& line);

/// Capacities of the queue pairs.
inline constexpr uint32_t kDatagramReceives = 64;
inline constexpr uint32_t kStreamReceives = 16;
inline constexpr uint32_t kDatagramSends = 64;
inline constexpr uint32_t kStreamSends = 64;
/// Seconds until a queue pair or a connection that there could not be is tried again.
inline constexpr double kRetry = 0.3;

}  // namespace soak
