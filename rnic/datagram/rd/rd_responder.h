// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/counters.h"
#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/rd/indexed_pool.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/verdict.h"

namespace diwarp::rnic {

/// The Reads of an RD queue pair's peers, at their target. With the baton.
class RdResponder {
 public:
  RdResponder(const ddp::ProtectionContext& protection, Counters& counters)
      : protection_(protection), counters_(counters) {}

  /// A Read Request came, in order.
  Verdict take_request(RdPeer& peer, const rdmap::ReadRequest& request);
  const InboundRead& read(uint32_t index) const { return reads_.at(index); }
  /// Whether the memory that it names may be read now.
  Verdict check(const rdmap::ReadRequest& request) const;
  /// It may not any more: the rest of the response is a failure, which is a datagram of its own,
  /// so that the peer learns it whatever of the response came.
  void fail(RdPeer& peer, uint32_t index, TerminateCode code);
  /// A part of a response was sent, its end perhaps.
  void cut_up_to(const dgram::TxTag& tag) {
    InboundRead& read = reads_.at(tag.object);
    read.cut = read.cut || tag.offset + tag.length == read.request.length;
  }
  /// The peer acknowledged a part of a response, or a failure.
  void acknowledged(RdPeer& peer, const dgram::TxTag& tag);
  /// The peer refuses it.
  void refused(RdPeer& peer, const dgram::TxTag& tag, TerminateCode code);
  /// The association has ended.
  void drop(RdPeer& peer);
  /// Gives memory of Reads that are over back to the system.
  void trim() { reads_.trim(); }

 private:
  void finish(RdPeer& peer, InboundRead& read);

  const ddp::ProtectionContext& protection_;
  Counters& counters_;
  IndexedPool<InboundRead> reads_;
};

}  // namespace diwarp::rnic
