// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "llp/ack_watch.h"

namespace diwarp::llp {

/// Whether the peer of a stream still answers: how it is asked, and what is known of its answers.
/// The stream owns it; once the stream is gone (abort(), release()) it knows nothing.
class PeerProbe {
 public:
  virtual ~PeerProbe() = default;

  /// Nothing where it is not known.
  virtual std::optional<AckState> ack_state() const = 0;
  /// Has the peer probed while nothing is outstanding, such that the stream fails (ETIMEDOUT) when
  /// nothing came from it for so long; at least 2 s, in whole seconds. Zero: no probes.
  virtual void keep_alive(Duration within) = 0;
  /// The most time between two probes of a closed window (and between two retransmissions), as far
  /// as it can be set.
  virtual void limit_backoff(Duration most) = 0;
  /// What it is now; nothing where it cannot be set.
  virtual std::optional<Duration> backoff_limit() const = 0;
  /// A limit that an earlier owner of the descriptor set to the time without an acknowledgement
  /// holds no more: it would also end connections whose peer keeps its window closed.
  virtual void clear_user_timeout() = 0;
};

}  // namespace diwarp::llp
