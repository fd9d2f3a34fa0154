// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "base/counters.h"
#include "base/ring.h"
#include "ddp/protection_context.h"
#include "ddp/scatter.h"
#include "ddp/segmentation.h"
#include "dgram/rd_header.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/rd/rd_peer.h"

namespace diwarp::rnic {

class RdAssociations;
class RdRequests;
class RdResponder;
class RecordTable;

/// All that an RD queue pair sends: data, new and again, acknowledgements, opens, probes, resets.
/// Peers with something to send take turns. With the baton.
class RdTransmit final : public DatagramSource {
 public:
  RdTransmit(const ddp::ProtectionContext& protection, RecordTable& records, SendQueue& sends,
             RdPeers& peers, RdRequests& requests, RdResponder& responder,
             RdAssociations& associations, const dgram::ReorderBuffer& buffer,
             MemoryBudget& sent_memory, Counters& counters)
      : protection_(protection),
        records_(records),
        sends_(sends),
        peers_(peers),
        requests_(requests),
        responder_(responder),
        associations_(associations),
        buffer_(buffer),
        sent_memory_(sent_memory),
        counters_(counters) {}

  /// Begins anew.
  void reset();

  /// Answers a datagram of an association that is not there. Left out when too many wait.
  void post_reset(const llp::Destination& to, const dgram::RdHeader& header);

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void unsent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  static constexpr size_t kResets = 64;

  enum class Act : uint8_t { fresh, again, acknowledgement, probe, open, reset };
  struct Planned {
    Act act = Act::fresh;
    RdPeer* peer = nullptr;
    uint64_t sequence = 0;
    RdPart part = {};
    STag sink = 0;  // of a fresh Read Request
  };
  struct Reset {
    llp::Destination to;
    dgram::RdHeader header;
  };
  /// What is the same in all datagrams of one burst to one peer.
  struct Lane {
    RdPeer& peer;
    DatagramBuilder& builder;
    Time now;
    dgram::RdHeader names;
    size_t body = 0;     // bytes, of the longest datagram
    size_t planned = 0;  // datagrams of this peer in this burst
    uint32_t again = 0;  // of these
    uint32_t fresh = 0;  // the same
  };

  void hand_over(Time now);
  void fill_resets(DatagramBuilder& builder);
  bool serve(RdPeer& peer, DatagramBuilder& builder, Time now);
  bool fill_peer(RdPeer& peer, DatagramBuilder& builder, Time now);
  bool fill_established(Lane& lane);
  bool fill_again(Lane& lane);
  bool fill_fresh(Lane& lane);
  bool fill_signs(Lane& lane);
  bool too_long(const Lane& lane, const RdPart& part) const;
  bool may_send_again(Lane& lane, uint64_t sequence);
  bool may_use(Lane& lane, const dgram::TxTag& tag);
  bool prepare(Lane& lane);
  size_t payload(const Lane& lane, const SendEntry* entry) const;

  bool add_open(RdPeer& peer, DatagramBuilder& builder, Time now);
  bool add_sequenced(Lane& lane, const Planned& planned);
  bool add_segment(Lane& lane, const Planned& planned);
  bool add_response(Lane& lane, const Planned& planned);
  bool add_request(Lane& lane, const Planned& planned);
  bool add_failure(Lane& lane, const Planned& planned);
  bool add_skip(Lane& lane, const Planned& planned);
  void add_acknowledgement(Lane& lane);
  void add_probe(Lane& lane);
  void add_cut(Lane& lane, const Planned& planned, const rdmap::DatagramSegment& segment,
               size_t pieces);
  void add(Lane& lane, const Planned& planned, uint8_t flags, size_t header, size_t pieces);
  void book(const Planned& planned);
  void book_fresh(const Planned& planned);
  void plan(size_t index, const Planned& planned);
  const Planned& planned(size_t index) const;

  const ddp::ProtectionContext& protection_;
  RecordTable& records_;
  SendQueue& sends_;
  RdPeers& peers_;
  RdRequests& requests_;
  RdResponder& responder_;
  RdAssociations& associations_;
  const dgram::ReorderBuffer& buffer_;
  MemoryBudget& sent_memory_;  // for what was sent and is not acknowledged
  Counters& counters_;
  Time now_{};                                  // of the burst under way
  DatagramBurst::SourceData* plans_ = nullptr;  // of the same: Planned
  std::unique_ptr<Ring<Reset>> resets_;         // made when first needed

  // Where in its message the last segment ended, so that the next one costs no search.
  const SendEntry* cutting_ = nullptr;
  uint64_t cut_ = 0;
  ddp::SgeCursor cursor_;
  rdmap::DatagramSegment header_;
};

}  // namespace diwarp::rnic
