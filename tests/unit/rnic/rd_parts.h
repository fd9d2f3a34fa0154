// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string_view>

#include "dgram/rd_header.h"
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

/// The header of a datagram of class RD, and the segment in it. Both lie in its bytes.
inline dgram::ParsedRdHeader rd_header(const Sent& sent) {
  return dgram::parse_rd_header(sent.opened().body);
}
inline rdmap::DatagramSegment rd_segment(const Sent& sent) {
  const rdmap::ParsedSegment parsed =
      rdmap::parse_segment(sent.opened().labels.flags, rd_header(sent).rest);
  if (!parsed.valid) throw std::runtime_error("no segment");
  return parsed.segment;
}
inline std::string_view rd_text(const Sent& sent) {
  const ConstBytes bytes = rd_segment(sent).payload;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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
