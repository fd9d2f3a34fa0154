// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "llp/ack_watch.h"
#include "llp/peer_probe.h"
#include "rnic/context/peer_timeouts.h"

namespace diwarp::rnic {

/// Notices that the peer of a connection is gone. The kernel's keep-alives find that out while
/// TCP has nothing to send, also while the response to a Read is pending; they cost no thread
/// anything. Bytes that TCP has sent, or may not send for the peer's closed window, are looked
/// after here, by a timer of the engine: the kernel's own limit (TCP_USER_TIMEOUT) would also end
/// connections whose peer answers and does not read. With the baton.
class RcPeerWatch {
 public:
  enum class Verdict : uint8_t {
    idle,   ///< nothing is outstanding: look again when something was sent
    again,  ///< look again after next_look()
    gone,   ///< the peer answers no more
  };

  /// Until stop(). A stream without a probe is not watched.
  void start(llp::PeerProbe* probe, const PeerTimeouts& timeouts);
  void stop() { probe_ = nullptr; }

  /// Whether look() has to be called from now on, if something is sent.
  bool watches() const { return probe_ != nullptr && timeouts_.user_timeout != Duration::zero(); }
  /// Something is sent, and was not looked after until now.
  void begin(Time now) { acks_.start(now); }
  Duration next_look() const;
  /// `response_pending`: the response to a Read or an atomic is pending.
  Verdict look(bool response_pending, Time now);
  const PeerTimeouts& timeouts() const { return timeouts_; }

 private:
  void probe_within(Duration within);
  void probe_closed_window(bool closed);

  llp::PeerProbe* probe_ = nullptr;  // the stream's; null: nothing is watched
  PeerTimeouts timeouts_;
  Duration probing_{0};              // within which keep-alives find the end
  std::optional<Duration> backoff_;  // the system's, while another is set
  llp::AckWatch acks_;
};

}  // namespace diwarp::rnic
