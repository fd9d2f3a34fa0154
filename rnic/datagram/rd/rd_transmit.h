// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/counters.h"
#include "ddp/protection_context.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/rd/rd_datagram_writer.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_resets.h"

namespace diwarp::rnic {

class RdAssociations;
class RdRequests;
class RdResponder;
class RdTransmissionLog;
class RecordTable;

/// Decides what an RD queue pair sends: data, new and again, acknowledgements, opens, probes,
/// resets. Peers with something to send take turns. RdQueuePair owns it. With the baton.
class RdTransmit final : public DatagramSource {
 public:
  RdTransmit(const ddp::ProtectionContext& protection, RecordTable& records, SendQueue& sends,
             RdPeers& peers, RdRequests& requests, RdResponder& responder,
             RdAssociations& associations, const dgram::ReorderBuffer& buffer,
             MemoryBudget& sent_memory, Counters& counters, RdTransmissionLog* log = nullptr)
      : protection_(protection),
        records_(records),
        sends_(sends),
        peers_(peers),
        requests_(requests),
        responder_(responder),
        associations_(associations),
        buffer_(buffer),
        sent_memory_(sent_memory),
        counters_(counters),
        log_(log),
        resets_(counters),
        writer_(protection, sends, requests, responder, buffer, *this) {}

  /// Begins anew.
  void reset();

  /// Answers datagrams of associations that are not there.
  RdResets& resets() { return resets_; }

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void unsent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  void hand_over(Time now);
  bool serve(RdPeer& peer, DatagramBuilder& builder, Time now);
  bool fill_peer(RdPeer& peer, DatagramBuilder& builder, Time now);
  bool fill_established(RdPeerBurst& burst);
  bool fill_again(RdPeerBurst& burst);
  bool fill_fresh(RdPeerBurst& burst);
  bool fill_signs(RdPeerBurst& burst);
  bool too_long(const RdPeerBurst& burst, const RdPart& part) const;
  bool may_send_again(RdPeerBurst& burst, uint64_t sequence);
  bool may_use(RdPeerBurst& burst, const dgram::TxTag& tag);
  bool prepare(RdPeerBurst& burst);

  void book(const RdPlanned& planned);
  void book_fresh(const RdPlanned& planned);

  const ddp::ProtectionContext& protection_;
  RecordTable& records_;
  SendQueue& sends_;
  RdPeers& peers_;
  RdRequests& requests_;
  RdResponder& responder_;
  RdAssociations& associations_;
  const dgram::ReorderBuffer& buffer_;
  MemoryBudget& sent_memory_;  // for datagrams sent and not acknowledged
  Counters& counters_;
  RdTransmissionLog* const log_;  // null: none
  Time now_{};                    // of the burst under way
  RdResets resets_;
  RdDatagramWriter writer_;
};

}  // namespace diwarp::rnic
