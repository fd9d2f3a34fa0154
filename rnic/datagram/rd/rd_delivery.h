// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/clock.h"
#include "ddp/protection_context.h"
#include "dgram/rd_header.h"
#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_stag_limit.h"
#include "rnic/datagram/route_header.h"
#include "rnic/datagram/verdict.h"

namespace diwarp::rnic {

class ErrorReports;
class ReceiveBuffers;
class RdRequests;
class RdResponder;
class RecordTable;

/// The delivery of reliable datagrams, once it is their turn: finds their place and tells the
/// application. RdQueuePair owns it. With the baton.
class RdDelivery {
 public:
  RdDelivery(ReceiveBuffers& receives, const ddp::ProtectionContext& protection,
             const RdPeers& peers, RecordTable& records, RdRequests& requests,
             RdResponder& responder, ErrorReports& errors, const LoggedCounters& counters,
             const DatagramOptions& options, const RouteHeaders* headers = nullptr)
      : receives_(receives),
        protection_(protection),
        records_(records),
        requests_(requests),
        responder_(responder),
        errors_(errors),
        counters_(counters),
        stag_limit_(peers, options),
        headers_(headers),
        headroom_(headroom_of(headers)),
        q_key_(options.q_key),
        record_per_segment_(options.record_completion == RecordCompletion::per_segment) {}

  enum class Outcome : uint8_t {
    delivered,
    no_receive,  ///< it waits for a receive; nothing was done
    no_share,    ///< a Send of several segments waits for the end of another; nothing was done
    no_room,     ///< it waits for room to report a record; nothing was done
    stag_limit,  ///< it waits until it may name memory; nothing was done
    no_memory,   ///< it was dropped, and has to come again; nothing was done
    refused,     ///< for an error: peer.inbound.refusal() says which
  };

  /// Takes what follows the RD header of the peer's next datagram.
  Outcome deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes, Time now);
  /// The Send that the peer has begun made no progress for long: it gives its receive back, and
  /// is refused when more of it comes.
  void expire(RdPeer& peer);
  /// Of Sends that begin from now on.
  void set_q_key(uint32_t q_key) { q_key_ = q_key; }
  /// Whether a peer may name memory.
  const RdStagLimit& stag_limit() const { return stag_limit_; }
  /// The message that the peer had begun will not be finished.
  void abandon(RdPeer& peer);
  /// It may begin that once more, from the start.
  void interrupt(RdPeer& peer);

 private:
  using Segment = rdmap::DatagramSegment;

  [[gnu::cold]] void trace(const RdPeer& peer, const Segment& segment) const;
  Outcome deliver_segment(RdPeer& peer, const Segment& segment, Time now);
  void skip(RdPeer& peer, const dgram::MessageName& message);
  Outcome deliver_request(RdPeer& peer, const Segment& segment, Time now);
  void take_receive(RdPeer& peer, ReceiveEntry& receive, const Segment& segment, Time now);
  ReceiveEntry* release_receive(RdPeer& peer);
  void give_back(RdPeer& peer);
  Outcome deliver_record(RdPeer& peer, const Segment& segment, Time now);
  Outcome report_segment(RdPeer& peer, const Segment& segment, Time now);
  Outcome place_in_record(RdPeer& peer, const Segment& segment, Time now);
  Outcome conclude_record(RdPeer& peer, const Verdict& verdict, const Segment& segment, Time now);
  Outcome conclude_late_record(RdPeer& peer, const Segment& segment, Time now);
  void close_abandoned(RdPeer& peer);
  Outcome deliver_send(RdPeer& peer, const Segment& segment, Time now);
  Outcome place(RdPeer& peer, const Segment& segment, Time now);
  Outcome begin_send(RdPeer& peer, const Segment& segment, Time now);
  void complete(RdPeer& peer, const Segment& segment, Time now);
  void fail_receive(RdPeer& peer);
  Outcome conclude(RdPeer& peer, const Verdict& verdict, const Segment& segment, Time now);
  Outcome refuse(RdPeer& peer, TerminateCode code, const Segment& segment, Time now);

  ReceiveBuffers& receives_;
  const ddp::ProtectionContext& protection_;
  RecordTable& records_;
  RdRequests& requests_;
  RdResponder& responder_;
  ErrorReports& errors_;
  const LoggedCounters& counters_;
  RdStagLimit stag_limit_;
  const RouteHeaders* const headers_;  // null: receives get none
  const uint32_t headroom_;            // bytes of a receive that stand before the message
  uint32_t q_key_;
  const bool record_per_segment_;
};

}  // namespace diwarp::rnic
