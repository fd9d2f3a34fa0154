// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "diwarp/reliable_options.h"

namespace diwarp::rnic {

class RdPeer;

/// Of an RD queue pair's options, as ReliableOptions has them, and when they have something done
/// about a peer. RdQueuePair owns it. With the baton.
struct RdTimeouts {
  /// A peer with which nothing was exchanged for so long needs no memory but its own, and not even
  /// that where others want it.
  static constexpr Duration kQuiet = std::chrono::seconds(1);

  Duration peer_timeout;
  Duration keep_alive;
  Duration idle_timeout;
  Duration message_timeout;  ///< never zero

  static RdTimeouts of(const ReliableOptions& options);

  /// A peer of which something is awaited is given up when it is silent for long, or a datagram
  /// does not get through to it for as long although others do. Time::max(): nothing is awaited.
  Time give_up_at(const RdPeer& peer) const;
  /// Memory for what came early is shared by all peers: none keeps it by leaving a datagram out.
  Time give_up_early_at(const RdPeer& peer) const;
  /// How long a silent peer is remembered. One of which something waits here sends probes while it
  /// is there, so that it outlives a few lost ones.
  Duration forgotten_after(const RdPeer& peer) const;
  /// When the first of all that is due about a peer is due.
  Time next_due(const RdPeer& peer) const;

 private:
  Time give_up_awaited_at(const RdPeer& peer) const;
};

}  // namespace diwarp::rnic
