// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/reliable_options.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/rd/indexed_pool.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/sink_stags.h"
#include "rnic/datagram/verdict.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The MSNs of an RD queue pair's requests: each kind of message counts its own, over all peers.
class RdMsns {
 public:
  void start(uint32_t first) { send_ = record_ = request_ = first; }
  /// A request keeps its MSN when it is repeated. A Read has as many as it has Read Requests.
  uint32_t take(const SendEntry& entry);

 private:
  uint32_t send_ = 0;
  uint32_t record_ = 0;
  uint32_t request_ = 0;
};

/// The requests of an RD queue pair's send queue, once they are handed over: which message each is,
/// and how it ends. RdQueuePair owns it. With the baton.
class RdRequests {
 public:
  RdRequests(const ddp::ProtectionContext& protection, SendQueue& sends, ErrorScope scope);

  /// Begins anew; MSNs start there.
  void set_first_msn(uint32_t first_msn);

  /// A request of the send queue was handed over for this peer.
  void add(RdPeer& peer, SendEntry& entry);
  /// Whether its memory may be used now.
  bool has_memory(const SendEntry& entry) const;
  void fail(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error = 0);
  /// All of the peer's. They go in order.
  void fail_all(RdPeer& peer, WcStatus status);
  /// Whether nothing of what is under way can have been delivered, and all can be done anew.
  bool can_repeat(const RdPeer& peer, Time now) const;
  /// All is cut anew, from the beginning.
  void rewind(RdPeer& peer);
  /// The association has ended: no Read Request of it will be answered.
  void drop_reads(RdPeer& peer);

  // --- Datagrams.

  /// Makes sure that add_read() has what it needs. False where there is no memory.
  bool reserve_reads(size_t count) { return reads_.reserve(count); }
  STag next_sink() { return sinks_.next(); }
  /// A Read Request for `tag`'s part of its entry (the object) was sent as datagram `sequence`.
  /// Returns its own number, by which it is sent again.
  uint32_t add_read(RdPeer& peer, const dgram::TxTag& tag, STag sink, uint64_t sequence);
  const OutboundRead& read(uint32_t index) const { return reads_.at(index); }
  /// The peer acknowledged a part of a Send or Write-Record.
  void acknowledged(RdPeer& peer, const dgram::TxTag& tag);
  /// The peer refuses the message.
  void refused(RdPeer& peer, const dgram::TxTag& tag, TerminateCode code);

  // --- Reads.

  /// A Read Response came, in order.
  Verdict take_response(RdPeer& peer, const rdmap::DatagramSegment& segment);
  /// A part of a response will not come; a failure will.
  void take_skip(RdPeer& peer, STag sink);
  void take_failure(RdPeer& peer, STag sink, TerminateCode code);

  /// An error came that ends all work of the queue pair. Asked once.
  bool take_fatal() { return std::exchange(fatal_, false); }
  bool fatal() const { return fatal_; }
  void make_fatal() { fatal_ = true; }
  /// Requests ended: one in the send queue that waited for them may go on. Asked once.
  bool take_ended() { return std::exchange(ended_, false); }

 private:
  void finish(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error);
  void fail_remotely(RdPeer& peer, SendEntry& entry, WcStatus status);
  void place(RdPeer& peer, OutboundRead& read, const rdmap::DatagramSegment& segment);

  const ddp::ProtectionContext& protection_;
  SendQueue& sends_;
  SinkStags sinks_;
  RdMsns msns_;
  const ErrorScope scope_;
  bool fatal_ = false;
  bool ended_ = false;
  IndexedPool<OutboundRead> reads_;
};

/// How both ends call the message that a Send or Write-Record is.
dgram::MessageName message_of(const SendEntry& entry);
/// The same of the Read Request for what lies at `offset` of a Read.
dgram::MessageName request_of(const SendEntry& entry, uint64_t offset);
/// The request for `tag`'s part of a Read, with this sink.
rdmap::ReadRequest read_request(const SendEntry& entry, const dgram::TxTag& tag, STag sink);
/// Whether all of the peer's requests that are not done are Reads: done once more, they do no harm.
bool only_reads(const RdPeer& peer);
inline bool is_read(const SendEntry& entry) { return rdmap::is_read(entry.opcode); }

}  // namespace diwarp::rnic
