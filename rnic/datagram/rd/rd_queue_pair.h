// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "dgram/reorder_buffer.h"
#include "rnic/datagram/datagram_queue_pair.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "rnic/datagram/rd/rd_delivery.h"
#include "rnic/datagram/rd/rd_order.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/rd/rd_timeouts.h"
#include "rnic/datagram/rd/rd_transmission_log.h"
#include "rnic/datagram/rd/rd_transmit.h"

namespace diwarp::rnic {

/// A reliable datagram queue pair: its messages are delivered once, and in order to each peer. The
/// protocol is described in dgram/rd_header.h.
class RdQueuePair final : public DatagramQueuePair, private RdPeerOwner {
 public:
  RdQueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init);
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
  void q_key_changed() override { delivery_.set_q_key(q_key()); }  // guard(q-key)
  void forget_peers() override;

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
  bool take_sign(RdPeer& peer, const dgram::ParsedRdHeader& parsed, Time now);
  void acknowledge_all();
  void look_at_touched(Time now);
  void shorten_datagrams(RdPeer& peer, uint32_t payload, Time now);

  void on_peer_timer(RdPeer& peer, Time now) override;
  void add_timer_place() override { engine().timers().add_places(1); }
  void remove_timer_place() override { engine().timers().remove_places(1); }
  bool forget_for(const Address& newcomer, Time now) override;
  void run_timers(RdPeer& peer, Time now);
  void forget(RdPeer& peer);
  bool end_if_fatal();

  const RdTimeouts timeouts_;
  const bool fragments_;  // IP does, so that every packet is as long as the path carries
  const std::unique_ptr<RdTransmissionLog> transmission_log_;  // null: none
  dgram::ReorderBuffer buffer_;
  MemoryBudget sent_memory_;  // of all peers together
  RdPeers peers_;
  RdRequests requests_;
  RdResponder responder_;
  RdDelivery delivery_;
  RdAssociations associations_;
  RdTransmit transmit_;
  RdOrder order_;
};

}  // namespace diwarp::rnic
