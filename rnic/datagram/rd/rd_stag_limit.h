// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "diwarp/datagram_options.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/datagram/verdict.h"

namespace diwarp::rnic {

/// Which peers of an RD queue pair may name memory: one that has named some in vain too often has
/// to wait, and so have all when all together did. Those that wait for the limit of all stand in
/// line, and go first. RdDelivery owns it. With the baton.
class RdStagLimit {
 public:
  RdStagLimit(const RdPeers& peers, const DatagramOptions& options)
      : peers_(peers),
        limit_(options.stag_misses_per_source, options.stag_misses, options.source_timeout) {}

  /// When the peer may name memory; `now`: at once.
  Time may_name_memory_at(const RdPeer& peer, Time now) const {
    const bool others_first = !peers_.without_stag_pass.empty() && !peer.turn.is_first_in_line();
    return limit_.passes_at(peer.stag_misses, peer.host.stags, others_first, now);
  }
  /// Whether it waits for a limit of its own, and not for that of all peers.
  bool has_guessed_too_often(const RdPeer& peer, Time now) const {
    return limit_.exhausted(peer.stag_misses, now);
  }
  /// Memory was named, rightly or in vain.
  void note(RdPeer& peer, bool rightly, Time now);
  /// The same, as the verdict has it. A drop without a fault says nothing of the peer.
  void note_verdict(RdPeer& peer, const Verdict& verdict, Time now);

 private:
  const RdPeers& peers_;
  StagMissLimit limit_;
};

}  // namespace diwarp::rnic
