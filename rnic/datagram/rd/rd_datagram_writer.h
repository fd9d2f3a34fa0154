// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "ddp/protection_context.h"
#include "ddp/scatter.h"
#include "dgram/rd_header.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/rd/rd_burst_plan.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::dgram {
class ReorderBuffer;
}

namespace diwarp::rnic {

class RdRequests;
class RdResponder;

/// What is the same in all datagrams of one burst to one peer.
struct RdPeerBurst {
  RdPeer& peer;
  DatagramBuilder& builder;
  Time now;
  dgram::RdHeader names;
  size_t body = 0;     // bytes, of the longest datagram
  size_t planned = 0;  // datagrams of this peer in this burst
  uint32_t again = 0;  // of these
  uint32_t fresh = 0;  // of these
  bool more = false;   // there is more to send for the first time than may go now

  /// The most payload of a datagram of this request; null: of a response.
  size_t max_payload(const SendEntry* entry) const;
};

/// Writes an RD queue pair's datagrams into a burst, and remembers what each is until the link has
/// told what became of it. It decides nothing, and changes nothing of a peer. RdTransmit owns it.
/// With the baton.
class RdDatagramWriter {
 public:
  /// `source`: of the datagrams.
  RdDatagramWriter(const ddp::ProtectionContext& protection, SendQueue& sends,
                   const RdRequests& requests, const RdResponder& responder,
                   const dgram::ReorderBuffer& buffer, DatagramSource& source)
      : protection_(protection),
        sends_(sends),
        requests_(requests),
        responder_(responder),
        buffer_(buffer),
        source_(source) {}

  /// Begins with a burst.
  void begin(DatagramBuilder& builder) {
    plan_.begin(builder);
    forget_message();
  }
  /// Requests may have gone.
  void forget_message() { cutting_ = nullptr; }
  /// Whether the last segment was of this request, so that its memory was checked in this burst.
  bool is_cutting(const SendEntry& entry) const { return cutting_ == &entry; }
  RdBurstPlan& plan() { return plan_; }
  const RdPlanned& planned(const DatagramTag& tag) const { return plan_.at(tag.value); }

  void add_open(RdPeer& peer, DatagramBuilder& builder, Time now);
  /// A datagram that has a sequence number. False, and the burst is closed, if there is no room for
  /// its pieces in it.
  bool add_sequenced(RdPeerBurst& burst, const RdPlanned& planned);
  void add_acknowledgement(RdPeerBurst& burst);
  void add_probe(RdPeerBurst& burst);

 private:
  bool add_segment(RdPeerBurst& burst, const RdPlanned& planned);
  bool add_response(RdPeerBurst& burst, const RdPlanned& planned);
  void add_request(RdPeerBurst& burst, const RdPlanned& planned);
  void add_failure(RdPeerBurst& burst, const RdPlanned& planned);
  void add_skip(RdPeerBurst& burst, const RdPlanned& planned);
  void add_cut(RdPeerBurst& burst, const RdPlanned& planned, const rdmap::DatagramSegment& segment,
               size_t pieces);
  void add(RdPeerBurst& burst, const RdPlanned& planned, uint8_t flags, size_t header,
           size_t pieces);

  const ddp::ProtectionContext& protection_;
  SendQueue& sends_;
  const RdRequests& requests_;
  const RdResponder& responder_;
  const dgram::ReorderBuffer& buffer_;
  DatagramSource& source_;
  RdBurstPlan plan_;

  // Where in its message the last segment ended, so that the next one costs no search.
  const SendEntry* cutting_ = nullptr;
  uint64_t cut_ = 0;
  ddp::SgeCursor cursor_;
  rdmap::DatagramSegment header_;
};

}  // namespace diwarp::rnic
