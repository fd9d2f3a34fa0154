// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "dgram/identity.h"
#include "dgram/reorder_buffer.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/rd/rd_delivery.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"

namespace diwarp::rnic {

/// Begins and ends a queue pair's associations with its peers (docs/wire-format.md has the
/// rules), and what that means for the work under way. With the baton.
class RdAssociations {
 public:
  RdAssociations(RdPeers& peers, dgram::Identity& identity, RdRequests& requests,
                 RdResponder& responder, RdDelivery& delivery, dgram::ReorderBuffer& buffer,
                 const LoggedCounters& counters, Duration peer_timeout)
      : peers_(peers),
        identity_(identity),
        requests_(requests),
        responder_(responder),
        delivery_(delivery),
        buffer_(buffer),
        counters_(counters),
        peer_timeout_(peer_timeout) {}

  /// The peer is to be told of work that is there for it.
  void open(RdPeer& peer, Time now);
  /// A valid open came.
  void take_open(RdPeer& peer, const dgram::RdHeader& header, uint32_t incarnation, Time now);
  /// A datagram came that accepts what was opened here.
  void accepted(RdPeer& peer, Time now);
  /// The peer does not know the association any more.
  void ended(RdPeer& peer, const dgram::RdHeader& header, uint32_t incarnation, Time now);
  /// The peer gives no sign of life.
  void give_up(RdPeer& peer, Time now);
  /// Datagrams under way are to be cut anew, in another association.
  void reopen(RdPeer& peer, Time now);
  /// Early datagrams wait too long for those that the peer has to send: their memory is given back.
  void give_up_early(RdPeer& peer, Time now);
  /// Before the peer is forgotten, or the queue pair reset: gives back what it holds, reports
  /// nothing of its work.
  void drop(RdPeer& peer);

  /// The flags of an open or a reset to this peer (null: it is not known).
  static uint8_t flags(const RdPeer* peer, Time now);

 private:
  RdPeer* add_incarnation(RdPeer& present, Time now);
  void rewind(RdPeer& peer, bool uncertain);
  void fail_restarted(RdPeer& peer);
  void fail_stalled(RdPeer& peer, Time now);
  void end_association(RdPeer& peer);
  void release(RdPeer& peer);
  void end_or_repeat(RdPeer& peer, bool same, bool broken, Time now);
  void establish(RdPeer& peer, uint32_t incarnation, uint16_t window, Time now);

  RdPeers& peers_;
  dgram::Identity& identity_;
  RdRequests& requests_;
  RdResponder& responder_;
  RdDelivery& delivery_;
  dgram::ReorderBuffer& buffer_;
  const LoggedCounters& counters_;
  const Duration peer_timeout_;
};

}  // namespace diwarp::rnic
