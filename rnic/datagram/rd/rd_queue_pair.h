// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "dgram/reorder_buffer.h"
#include "rnic/datagram/datagram_queue_pair.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "rnic/datagram/rd/rd_delivery.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/rd/rd_transmit.h"

namespace diwarp::rnic {

/// Of an RD queue pair's options, as ReliableOptions has them.
struct RdTimeouts {
  Duration peer_timeout;
  Duration keep_alive;
  Duration idle_timeout;
  Duration message_timeout;  ///< never zero

  static RdTimeouts of(const ReliableOptions& options);
};

/// A reliable datagram queue pair: what it sends is delivered once, and in order to each peer. The
/// protocol is described in dgram/rd_header.h.
class RdQueuePair final : public DatagramQueuePair, private RdPeerOwner {
 public:
  RdQueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init);
  ~RdQueuePair() override;

  std::vector<ReliablePeer> peers() override;

  // --- With the baton.

  size_t receive(Time now) override;
  Served transmit(Time now) override;

 protected:
  void take_datagram(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                     Time now) override;
  void batch_taken(Time now) override;
  void start_msns() override;
  void forget_peers() override;
  void expire(Time) override {}
  Time next_expiry() override { return Time::max(); }

 private:
  void take_control(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                    Time now);
  void take_reliable(const dgram::OpenedEnvelope& envelope, const llp::IncomingDatagram& datagram,
                     Time now);
  void take_open(const dgram::ParsedRdHeader& parsed, const dgram::OpenedEnvelope& envelope,
                 const llp::IncomingDatagram& datagram, Time now);
  void challenge(uint64_t nonce, uint32_t incarnation, const llp::IncomingDatagram& datagram,
                 Time now);
  void take_unknown(const dgram::RdHeader& header, uint32_t incarnation,
                    const llp::Destination& from, Time now);
  void take_ours(RdPeer& peer, const dgram::ParsedRdHeader& parsed, uint8_t flags, Time now);
  void acknowledged(RdPeer& peer, const dgram::TxTag& tag);
  void refused(RdPeer& peer, TerminateCode code);
  void take_sequenced(RdPeer& peer, const dgram::ParsedRdHeader& parsed, uint8_t flags, Time now);
  void keep(RdPeer& peer, uint32_t sequence, dgram::RdKind kind, uint8_t flags, ConstBytes bytes,
            Time now);
  RdDelivery::Outcome try_deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes,
                                  Time now);
  bool deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags, ConstBytes bytes, Time now);
  void deliver_kept(RdPeer& peer, Time now);
  void hold(RdPeer& peer, RdDelivery::Outcome outcome, Time now);
  void resume_held(Time now);
  void resume_without_share(Time now);
  void await_share();
  void await_stag_limit(RdPeer& peer, Time now);
  void retry(RdPeer& peer, Time now);
  void resume_line(Time now);
  bool resume(RdPeer& peer, Time now);
  void look_at_touched(Time now);
  void arm(RdPeer& peer);

  void on_peer_timer(RdPeer& peer, Time now) override;
  void add_timer_place() override { engine().timers().add_places(1); }
  void remove_timer_place() override { engine().timers().remove_places(1); }
  bool forget_for(const Address& newcomer, Time now) override;
  void run_timers(RdPeer& peer, Time now);
  void give_back_memory(RdPeer& peer, Time now);
  Time give_up_at(const RdPeer& peer) const;
  Time give_up_early_at(const RdPeer& peer) const;
  Time deadline(const RdPeer& peer) const;
  void forget(RdPeer& peer);
  Duration forgotten_after(const RdPeer& peer) const;
  void forget_all();
  bool end_if_fatal();

  const RdTimeouts timeouts_;
  dgram::ReorderBuffer buffer_;
  MemoryBudget sent_memory_;  // of all peers together
  RdPeers peers_;
  RdRequests requests_;
  RdResponder responder_;
  RdDelivery delivery_;
  RdAssociations associations_;
  RdTransmit transmit_;
};

}  // namespace diwarp::rnic
