// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "diwarp/types.h"
#include "llp/stream.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_transmit.h"
#include "rnic/rc/rc_transmit_context.h"

namespace diwarp::rnic {

/// How far an RC connection is on its way to an end in order: which side of the stream has ended,
/// and what this side must send, or have back, before. RcClosing ends this side; the queue pair
/// ends the connection. With the baton.
class RcClosing {
 public:
  /// What the queue pair has to do.
  enum class Step : uint8_t {
    none,            ///< something is outstanding, or nothing ends
    tell_drained,    ///< in sqd: all that was begun is done; once
    end_connection,  ///< both sides of the stream have ended, or the peer's has and this one is
                     ///< done
  };

  /// For a new stream.
  void start() { peer_closed_ = fin_sent_ = false; }
  /// In sqd from now on, or no longer: that all is done is told anew.
  void restart_drain() { drain_told_ = false; }

  /// Whether this side has something to finish when the peer has ended its side. Not where
  /// something is awaited from the peer.
  bool outlasts_peer(QpState state, const RcTransmit& transmit, const RcRequester& requester) const;
  /// The peer has ended its side, and outlasts_peer().
  void set_peer_closed() { peer_closed_ = true; }
  bool peer_closed() const { return peer_closed_; }

  /// Before there is a stream: whether it is to be told that all is done, as nothing was begun.
  bool tells_drained(QpState state) {
    return state == QpState::sqd && !std::exchange(drain_told_, true);
  }
  /// After something was sent, answered or released.
  Step go_on(QpState state, const RcTransmitContext& context, const RcTransmit& transmit);

 private:
  Step end_sending(llp::Stream& stream);

  bool peer_closed_ = false;
  bool fin_sent_ = false;
  bool drain_told_ = false;
};

}  // namespace diwarp::rnic
