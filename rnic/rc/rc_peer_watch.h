// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/clock.h"
#include "base/timer_queue.h"
#include "llp/ack_watch.h"
#include "llp/peer_probe.h"
#include "rnic/context/peer_timeouts.h"
#include "rnic/rc/rc_end.h"
#include "rnic/rc/rc_requester.h"

namespace diwarp::rnic {

/// Ends a connection that cannot go on: asked by RcPeerWatch.
class RcLossHandler {
 public:
  /// The stream takes nothing any more. Bytes that it brought before are still delivered.
  virtual void lose_connection(RcEnd reason) = 0;

 protected:
  ~RcLossHandler() = default;
};

/// Notices that the peer of a connection is gone, and says so. The kernel's keep-alives find that
/// out while TCP has nothing to send, also while the response to a Read is pending; they cost no
/// thread anything. Bytes that TCP has sent, or may not send for the peer's closed window, are
/// looked after here, by a timer of the engine: the kernel's own limit (TCP_USER_TIMEOUT) would
/// also end connections whose peer answers and does not read. With the baton.
class RcPeerWatch {
 public:
  /// `requester` knows whether the response to a Read or an atomic is pending.
  RcPeerWatch(TimerQueue& timers, const RcRequester& requester, RcLossHandler& handler)
      : timers_(timers), requester_(requester), handler_(handler) {}

  /// Until stop(). A stream without a probe is not watched.
  void start(llp::PeerProbe* probe, const PeerTimeouts& timeouts);
  void stop();
  /// Something may have been sent, and may be outstanding from now on.
  void sent(Time now) {
    if (!timer_.armed() && looks_after()) begin(now);
  }
  const PeerTimeouts& timeouts() const { return timeouts_; }

 private:
  bool looks_after() const {
    return probe_ != nullptr && timeouts_.user_timeout != Duration::zero();
  }
  void begin(Time now);
  void look(Time now);
  void look_again(Time now);
  void probe_within(Duration within);
  void probe_closed_window(bool closed);

  TimerQueue& timers_;
  const RcRequester& requester_;
  RcLossHandler& handler_;
  llp::PeerProbe* probe_ = nullptr;  // the stream's; null: nothing is watched
  PeerTimeouts timeouts_;
  Duration probing_{0};              // within which keep-alives find the end
  std::optional<Duration> backoff_;  // the system's, while another is set
  llp::AckWatch acks_;
  MemberTimer<RcPeerWatch, &RcPeerWatch::look> timer_{*this};
};

}  // namespace diwarp::rnic
