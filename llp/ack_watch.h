// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"

/// Whether the peer of a connection still answers: the answers that a stream knows of, and when the
/// peer counts as gone.
namespace diwarp::llp {

/// How many retransmissions or probes in a row a peer has left without an answer when it counts as
/// gone: fewer may have been lost.
inline constexpr uint32_t kUnansweredTries = 3;

/// The knowledge of a stream about the answers to the bytes sent on it.
struct AckState {
  bool outstanding = false;    ///< bytes are not acknowledged, or the peer's window keeps them here
  bool window_closed = false;  ///< of these, none is in flight
  Duration since_ack{0};       ///< since the last segment with a valid acknowledgement came
  uint32_t timeouts = 0;       ///< of the retransmission timer, since new bytes were acknowledged
  uint32_t retransmitted = 0;  ///< segments, since the connection began
  uint32_t probes = 0;         ///< of a closed window, or keep-alives, that have no answer yet
};

/// Tells from looks at the AckState, now and then, when a peer has become silent. Reads no clock.
class AckWatch {
 public:
  /// From `now` on something may be outstanding.
  void start(Time now);

  /// Whether the peer has not answered for `limit` while something was outstanding, and has left
  /// kUnansweredTries without an answer. So a peer that answers each probe is never silent, however
  /// long its window stays closed.
  bool is_silent(const AckState& state, Time now, Duration limit);
  /// How long it has not answered while something was outstanding, when it was looked at last.
  Duration silence() const { return silence_; }

 private:
  void note_answer(const AckState& state, Time now);

  Time since_{};  // of what is outstanding
  Duration silence_{0};
  std::optional<Time> answer_;  // the last one that a look has shown
  uint32_t timeouts_ = 0;       // when it came, or later
  uint32_t retransmitted_ = 0;  // the same
};

}  // namespace diwarp::llp
