// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

#include "parts.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_requests.h"

/// The peers of an RD queue pair, for tests of its parts.
namespace diwarp::rnic::parts {

/// A table of peers whose timers nobody runs.
struct Peers final : RdPeerOwner {
  explicit Peers(ReceiveShares& shares, const provider::QueuePairInit& init = {})
      : table(*this, shares, init) {}
  RdPeer& add(const char* host) {
    RdPeer* const peer =
        table.find_or_add(Address::parse(host, 7000), RdPeers::Opener::there, kNow);
    if (peer == nullptr) throw std::runtime_error("no room for a peer");
    return *peer;
  }
  void on_peer_timer(RdPeer&, Time) override {}
  void add_timer_place() override {}
  void remove_timer_place() override {}
  bool forget_for(const Address&, Time) override { return false; }

  RdPeers table;
};

/// Cuts what is next of a peer's work, at most `segment` bytes, and sends it. Returns what it was,
/// with the number that its datagram has.
struct Cut {
  RdPart part;
  uint64_t sequence = 0;
};
inline Cut cut(RdPeer& peer, const SendQueue& sends, size_t segment = 100, Time now = kNow) {
  const std::optional<RdPart> part = peer.work.cursor.next(sends, segment, segment);
  if (!part || !peer.sender().scoreboard().prepare()) throw std::runtime_error("nothing to cut");
  peer.work.cursor.advance(*part);
  const Cut made{*part, peer.sender().window().next()};
  if (part->skip)
    peer.sender().sent_skip(part->tag, now);
  else
    peer.sender().sent(part->tag, now);
  return made;
}

}  // namespace diwarp::rnic::parts
