// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "llp/peer_probe.h"

namespace diwarp::llp {

/// The other end of a TCP connection, as the kernel knows it. Holds the connection's socket, and
/// its TcpStream holds this; without a descriptor it knows nothing, and settings are lost.
class TcpPeer final : public PeerProbe {
 public:
  explicit TcpPeer(UniqueFd connected) : fd(std::move(connected)) {}

  /// Nothing where the kernel does not tell (TCP_INFO).
  std::optional<AckState> ack_state() const override;
  void keep_alive(Duration within) override;
  /// As far as the kernel lets it be set (TCP_RTO_MAX_MS, Linux 6.15): 1 s to 120 s.
  void limit_backoff(Duration most) override;
  std::optional<Duration> backoff_limit() const override;
  /// TCP_USER_TIMEOUT.
  void clear_user_timeout() override;

  UniqueFd fd;
};

}  // namespace diwarp::llp
