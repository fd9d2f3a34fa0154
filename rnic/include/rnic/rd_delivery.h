// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counters.h"
#include "dgram/rd_header.h"
#include "rdmap/datagram.h"
#include "rnic/judgement.h"
#include "rnic/rd_peer.h"

namespace diwarp::rnic {

class ErrorReports;
class QueuePair;
class RdRequests;
class RdResponder;
class RecordTable;

/// What reliable datagrams carry, once it is their turn: finds its place and tells the application.
/// With the baton.
class RdDelivery {
 public:
  RdDelivery(QueuePair& queue_pair, RecordTable& records, RdRequests& requests,
             RdResponder& responder, ErrorReports& errors, Counters& counters, uint32_t q_key, bool record_per_segment)
      : queue_pair_(queue_pair),
        records_(records),
        requests_(requests),
        responder_(responder),
        errors_(errors),
        counters_(counters),
        q_key_(q_key),
        record_per_segment_(record_per_segment) {}

  enum class Outcome : uint8_t {
    delivered,
    no_receive,  ///< it waits for a receive; nothing was done
    no_share,    ///< a Send of several segments waits for the end of another; nothing was done
    no_room,     ///< it waits for room to report a record; nothing was done
    no_memory,   ///< it was dropped, and has to come again; nothing was done
    refused,     ///< for an error: peer.inbound.refusal() says which
  };

  /// Takes what follows the RD header of the peer's next datagram.
  Outcome deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes, Time now);
  /// The Send that the peer has begun made no progress for long: it gives its receive back, and
  /// is refused when more of it comes.
  void expire(RdPeer& peer);
  /// Whether a Send of several segments may hold a receive while it is not whole: of some peer, and
  /// of this one.
  bool has_share() const { return unfinished_ < half_of_receives(); }
  bool may_hold(const RdPeer& peer) const;
  /// How many Sends of several segments have ended, one way or another: those that wait for a share
  /// may look again.
  uint64_t ended_sends() const { return ended_sends_; }
  /// What the peer had begun will not be finished.
  void abandon(RdPeer& peer);
  /// It may begin that once more, from the start.
  void interrupt(RdPeer& peer);

 private:
  using Segment = rdmap::DatagramSegment;

  Outcome deliver_segment(RdPeer& peer, const Segment& segment, Time now);
  void skip(RdPeer& peer, const dgram::MessageName& message);
  Outcome deliver_request(RdPeer& peer, const Segment& segment, Time now);
  size_t half_of_receives() const;
  void take_receive(RdPeer& peer, const Segment& segment, Time now);
  ReceiveEntry* release_receive(RdPeer& peer);
  void give_back(RdPeer& peer);
  static bool is_voided(RdPeer& peer, const Segment& segment);
  Outcome deliver_record(RdPeer& peer, const Segment& segment, Time now);
  Outcome conclude_late_record(RdPeer& peer, const Segment& segment, Time now);
  void close_abandoned(RdPeer& peer);
  Outcome deliver_send(RdPeer& peer, const Segment& segment, Time now);
  Outcome place(RdPeer& peer, const Segment& segment, Time now);
  Outcome begin_send(RdPeer& peer, const Segment& segment, Time now);
  bool continues(const RdMessage& message, const Segment& segment) const;
  void complete(RdPeer& peer, const Segment& segment);
  void fail_receive(RdPeer& peer);
  Outcome conclude(RdPeer& peer, const Judgement& judgement, const Segment& segment, Time now);
  Outcome refuse(RdPeer& peer, TerminateCode code, const Segment& segment, Time now);

  QueuePair& queue_pair_;
  RecordTable& records_;
  RdRequests& requests_;
  RdResponder& responder_;
  ErrorReports& errors_;
  Counters& counters_;
  uint32_t unfinished_ = 0;  // Sends that hold a receive
  uint64_t ended_sends_ = 0;
  const uint32_t q_key_;
  const bool record_per_segment_;
};

}  // namespace diwarp::rnic
