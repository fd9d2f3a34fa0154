// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_timeouts.h"

#include <algorithm>

#include "rnic/datagram/rd/rd_peer.h"

namespace diwarp::rnic {

using dgram::Handshake;

RdTimeouts RdTimeouts::of(const ReliableOptions& options) {
  const bool follows_peer = options.message_timeout == Duration::zero();
  return {.peer_timeout = options.peer_timeout,
          .keep_alive = options.keep_alive,
          .idle_timeout = options.idle_timeout,
          .message_timeout = follows_peer ? options.peer_timeout : options.message_timeout};
}

Time RdTimeouts::give_up_at(const RdPeer& peer) const {
  return peer.awaited() ? give_up_awaited_at(peer) : Time::max();
}

Time RdTimeouts::give_up_awaited_at(const RdPeer& peer) const {
  Time since = peer.times.silent_since();
  if (const auto stuck = peer.sender().stuck_since(); stuck && peer.handshake().established())
    since = std::min(since, *stuck);
  return saturating_add(since, peer_timeout);
}

Time RdTimeouts::give_up_early_at(const RdPeer& peer) const {
  return peer.lacks_next() ? saturating_add(peer.times.lacking_since(), message_timeout)
                           : Time::max();
}

Time RdTimeouts::next_due(const RdPeer& peer) const {
  Time due;
  if (peer.awaited()) {
    due = give_up_awaited_at(peer);
    if (peer.handshake().state() == Handshake::State::opening)
      due = std::min(due, peer.handshake().open_deadline(keep_alive));
  } else {
    due = saturating_add(peer.times.quiet_since(), forgotten_after(peer));
  }
  if (peer.lacks_segments())
    due = std::min(due, saturating_add(peer.inbound.message().last_progress, message_timeout));
  due = std::min(due, peer.turn.retry_at());
  due = std::min(due, give_up_early_at(peer));
  due = std::min(due, saturating_add(peer.sent_memory_unused_since(), kQuiet));
  due = std::min(due, saturating_add(peer.early_memory_unused_since(), kQuiet));
  if (!peer.handshake().established()) return due;
  if (const auto send = peer.sender().deadline(peer.more_awaited(), keep_alive))
    due = std::min(due, *send);
  return std::min(due, peer.signs.acknowledge_at());
}

Duration RdTimeouts::forgotten_after(const RdPeer& peer) const {
  // guard(rd-waits-long): without if (peer.unused())
  if (peer.unused()) return idle_timeout;
  const Duration left = Duration::max() - keep_alive;
  return std::max(idle_timeout, std::min(peer_timeout, left) + keep_alive);
}

}  // namespace diwarp::rnic
