// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/bytes.h"
#include "base/clock.h"
#include "dgram/rd_header.h"
#include "dgram/reorder_buffer.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/rd/rd_delivery.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/waker.h"

namespace diwarp::rnic {

class ReceiveBuffers;
class RdRequests;
class RecordTable;

/// Has what an RD queue pair's peers send delivered in the order of its numbers, keeps what came
/// early, and holds a peer whose next datagram waits: for a receive, for a share of them, for room
/// to report a record, for the limit of STag misses, for memory. RdQueuePair owns it. With the
/// baton.
class RdOrder {
 public:
  /// The queue pair is woken when there is something to send, or to go on with.
  RdOrder(ReceiveBuffers& receives, RecordTable& records, RdPeers& peers,
          const RdRequests& requests, RdDelivery& delivery, dgram::ReorderBuffer& buffer,
          const LoggedCounters& counters, Waker& waker)
      : receives_(receives),
        records_(records),
        peers_(peers),
        requests_(requests),
        delivery_(delivery),
        buffer_(buffer),
        counters_(counters),
        waker_(waker) {}

  /// A datagram with a number of its own came from the peer.
  void take_sequenced(RdPeer& peer, const dgram::ParsedRdHeader& parsed, uint8_t flags, Time now);
  /// Goes on with those that were held, as far as what they wait for is there.
  void resume_held(Time now);
  /// The time of a peer that waits for memory, or for the limit of STag misses, has come.
  void retry(RdPeer& peer, Time now);

 private:
  void keep(RdPeer& peer, uint32_t sequence, dgram::RdKind kind, uint8_t flags, ConstBytes bytes,
            Time now);
  RdDelivery::Outcome try_deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes,
                                  Time now);
  bool deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes, Time now);
  void deliver_kept(RdPeer& peer, Time now);
  void hold(RdPeer& peer, RdDelivery::Outcome outcome, Time now);
  void resume_without_share(Time now);
  void await_share();
  void await_stag_limit(RdPeer& peer, Time now);
  void resume_line(Time now);
  bool resume(RdPeer& peer, Time now);

  ReceiveBuffers& receives_;
  RecordTable& records_;
  RdPeers& peers_;
  const RdRequests& requests_;
  RdDelivery& delivery_;
  dgram::ReorderBuffer& buffer_;
  const LoggedCounters& counters_;
  Waker& waker_;
};

}  // namespace diwarp::rnic
