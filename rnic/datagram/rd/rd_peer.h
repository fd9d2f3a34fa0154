// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/keyed_hash.h"
#include "base/memory_budget.h"
#include "base/timer_queue.h"
#include "dgram/association.h"
#include "dgram/receiver.h"
#include "dgram/sender.h"
#include "provider/queue_pair_init.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/rd/forward_list.h"
#include "rnic/datagram/rd/rd_cursor.h"
#include "rnic/datagram/rd/rd_host.h"
#include "rnic/datagram/rd/rd_peer_state.h"
#include "rnic/datagram/record_source.h"
#include "rnic/datagram/size_refusals.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

struct RdReadyTag;
struct RdSoonTag;
struct RdTouchedTag;

/// A Read Request of this side that is not answered to its end.
struct OutboundRead {
  OutboundRead* next = nullptr;
  uint32_t index = 0;
  SendEntry* entry = nullptr;  ///< null: its Read is over, and the request is stale
  rdmap::ReadRequest request;
  uint32_t msn = 0;
  uint64_t sequence = 0;  ///< of its datagram
  uint64_t begin = 0;     ///< of what it asks for, in the Read
  uint32_t received = 0;  ///< bytes of that, from its beginning
  bool skipped = false;   ///< a part of the response will not come: a failure will
};

/// How much is kept of peers.
struct RdPeerLimits {
  uint32_t peers = 0;
  uint32_t per_address = 0;
  uint32_t window = 0;  ///< datagrams
  CongestionControl congestion_control = CongestionControl::bbr;
  uint32_t closed_records = 0;  ///< per peer, see DatagramOptions::closed_per_source
  uint32_t refused_records = 0;
  size_t record_memory = 0;  ///< bytes, of all peers

  static RdPeerLimits of(const provider::QueuePairInit& init);
  ddp::ClosedMessages no_records(MemoryBudget& memory) const {
    return ddp::ClosedMessages(closed_records, refused_records, &memory);
  }
};

/// The work for a peer, and for its Reads.
struct RdWork {
  ForwardList<SendEntry> requests;         ///< posted and not done
  ForwardList<OutboundRead> reads;         ///< unanswered, in the order of their requests
  ForwardList<InboundRead> inbound_reads;  ///< to be answered, or not acknowledged
  RdCursor cursor;
  RdRewinds rewinds;
  SizeRefusals size_refusals;  ///< since a fresh datagram was sent
};

/// All that an RD queue pair knows of one peer, in parts that own their fields. At most 1,512 bytes
/// while it is idle, with its place in the tables. With the baton.
class RdPeer : public ListNode<RdReadyTag>,
               public ListNode<RdSoonTag>,
               public ListNode<RdTouchedTag>,
               public ListNode<RdHeldTag> {
 public:
  /// Throws std::bad_alloc.
  RdPeer(RdHost& its_host, const Address& address, const RdPeerLimits& limits,
         MemoryBudget& record_memory, Time now)
      : association(limits.window, limits.congestion_control),
        source({.address = address}, limits.no_records(record_memory)),
        host(its_host),
        times(now) {
    host.owner().add_timer_place();  // guard(rnic)
    ++host.peers;
  }
  ~RdPeer() {
    --host.peers;
    host.owner().remove_timer_place();
  }

  const Address& address() const { return source.key.address; }

  /// Something of the peer is awaited: after long silence it is given up.
  bool awaited() const {
    if (handshake().established()) return !sender().window().idle() || more_awaited();
    return handshake().state() == dgram::Handshake::State::opening;
  }
  /// The same, but beyond what was sent and is not acknowledged.
  bool more_awaited() const {
    return !work.reads.empty() || (work.cursor.has_work() && !sender().window().is_open()) ||
           signs.doubted();
  }
  /// Whether news of what was sent decides what goes next, besides its work: of what was lost,
  /// waits to be cut anew, or waits for the pacer.
  bool awaits_progress() const {
    return sender().scoreboard().lost() != 0 || signs.blocked() || sender().waits_for_pacer();
  }
  /// Early datagrams wait for one that the peer has to send: the one that is missing, or a
  /// skip in the place of one that was refused.
  // guard(rd-early-memory): receiver().kept() != 0 && !turn.held() => false
  // guard(rd-waits-for-receive): without && !turn.held()
  bool lacks_next() const { return receiver().kept() != 0 && !turn.held(); }
  /// The rest of a Send has to come. While segments of it wait here, that is not the peer's fault.
  // guard(rd-send-rest): without && !turn.held()
  bool lacks_segments() const { return inbound.has_message() && !turn.held(); }
  /// Something is to be sent to the peer, or requests are not done.
  bool has_work() const { return !work.requests.empty() || work.cursor.has_work(); }
  /// Since when memory for what was sent, or came early, has not been needed; Time::max(): there is
  /// none, or it is needed. Other datagrams of the peer, a probe for example, do not keep it.
  Time sent_memory_unused_since() const {
    return sender().scoreboard().has_spare_memory() ? sender().timer().last_sent() : Time::max();
  }
  Time early_memory_unused_since() const {
    // guard(rd-only-ask): times.lacking_since() => times.quiet_since()
    return receiver().has_spare_memory() ? times.lacking_since() : Time::max();
  }
  /// Nothing of it is under way, in either direction: it may be forgotten.
  bool unused() const {
    return !awaited() && !has_work() && work.inbound_reads.empty() && receiver().kept() == 0 &&
           !turn.held() && !inbound.has_message() && source.open_records == 0;
  }
  /// From now on it is another incarnation.
  void replace_incarnation(uint32_t incarnation, ddp::ClosedMessages no_records) {
    source.closed_records = std::move(no_records);
    source.key.incarnation = incarnation;
    inbound.repeats().incarnation_replaced();
  }

  dgram::Handshake& handshake() { return association.handshake(); }
  const dgram::Handshake& handshake() const { return association.handshake(); }
  dgram::Sender& sender() { return association.sender(); }
  const dgram::Sender& sender() const { return association.sender(); }
  dgram::Receiver& receiver() { return association.receiver(); }
  const dgram::Receiver& receiver() const { return association.receiver(); }

  dgram::Association association;
  RecordSource source;  ///< for records; its key names the peer
  RdHost& host;

  // Sending.
  RdWork work;
  RdSigns signs;
  uint32_t local = 0;  ///< where it reaches this queue pair, as an IncomingDatagram has it

  // Receiving.
  RdInbound inbound;
  BriefMissCount stag_misses;
  RdTurn turn;

  RdTimes times;

 private:
  friend class RdPeers;
  void on_timer(Time now) { host.owner().on_peer_timer(*this, now); }

  std::unique_ptr<RdPeer> older_;  // another incarnation at the same address and port

 public:
  MemberTimer<RdPeer, &RdPeer::on_timer> timer{*this};
};
static_assert(sizeof(RdPeer) <= 1280, "a table of 16,384 takes 20 MiB");

/// The peers, by address and port. Several at one of these are incarnations that are, or were,
/// there at the same time: those that reach this queue pair by several of its own addresses, and
/// those that have restarted. New work goes to the one that was added last. The hash is keyed, so
/// that nobody can choose addresses that fall together. With the baton.
class RdPeers {
 public:
  /// Incarnations at one address and port that are remembered.
  static constexpr uint32_t kMaxIncarnations = 4;
  /// One place of so many is for peers that this side sends to first.
  static constexpr uint32_t kReserve = 8;
  /// Places of the hash table that are searched for a peer that is not in use.
  static constexpr int kPlacesSearched = 32;

  /// Which side begins.
  enum class Opener : uint8_t { here, there };

  RdPeers(RdPeerOwner& owner, ReceiveShares& shares, const provider::QueuePairInit& init);
  ~RdPeers() { clear(); }

  /// The one that new work goes to.
  RdPeer* find(const Address& address);
  /// The one whose association has this name here, or else the one that new work goes to.
  RdPeer* find_by_epoch(const Address& address, uint32_t epoch);
  /// The one that has, or had last, an association with this incarnation of it; null if none has.
  RdPeer* find_incarnation(const Address& address, uint32_t incarnation);
  /// The next one, of those at the address of `peer`; null after the last.
  static RdPeer* next_incarnation(const RdPeer& peer) { return peer.older_.get(); }
  /// Null where there is no room, or no memory, for another.
  RdPeer* find_or_add(const Address& address, Opener opener, Time now);
  /// Another incarnation at the address of `present`, to which new work goes from now on. Null as
  /// above, and where there are too many.
  RdPeer* add_beside(RdPeer& present, Time now);
  /// One that is not in use, has been silent for `silence`, and is at another address. Of those in
  /// the next kPlacesSearched places of the table it is one with most peers at its IP address; null
  /// where there is none.
  RdPeer* find_unused(Duration silence, const Address& newcomer, Time now);
  /// The memory of a peer of which no record is over.
  ddp::ClosedMessages no_records() { return limits_.no_records(record_memory_); }
  /// Its timer must not be armed.
  void erase(RdPeer& peer);
  void clear();

  /// It may have something to send.
  void make_ready(RdPeer& peer) { put(ready, peer); }
  /// Its timer is to be looked at.
  void touch(RdPeer& peer) { put(touched, peer); }

  IntrusiveList<RdPeer, RdReadyTag> ready;
  IntrusiveList<RdPeer, RdSoonTag> soon;  ///< to be acknowledged, if nothing takes that along
  IntrusiveList<RdPeer, RdTouchedTag> touched;
  IntrusiveList<RdPeer, RdHeldTag> without_receive;    ///< held; longest first
  RdShareQueue without_share;                          ///< held for a share of the receives
  IntrusiveList<RdPeer, RdHeldTag> without_room;       ///< held to report a record
  IntrusiveList<RdPeer, RdHeldTag> without_stag_pass;  ///< held for the limit of STag misses
  /// Whether a peer waits for a receive that is posted, or given back.
  // guard(rd-association-end): without || !without_share.empty()
  bool await_receives() const { return !without_receive.empty() || !without_share.empty(); }

  /// Whether a peer waits for what resume_held() of RdOrder finds.
  bool any_held() const { return await_receives() || !without_room.empty(); }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [address, newest] : peers_)
      for (RdPeer* peer = newest.get(); peer != nullptr; peer = peer->older_.get()) visit(*peer);
  }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<RdPeer> make(const Address& address, Opener opener, Time now);
  RdHost& host_at(const Address& address);
  void forget_host(const Address& address);

  RdHostContext context_;
  const RdPeerLimits limits_;
  MemoryBudget record_memory_;
  template <class Tag>
  static void put(IntrusiveList<RdPeer, Tag>& list, RdPeer& peer) {
    if (!static_cast<ListNode<Tag>&>(peer).linked()) list.push_back(peer);
  }

  std::unordered_map<Address, RdHost, KeyedHash<Address>> hosts_;  // with port 0
  std::unordered_map<Address, std::unique_ptr<RdPeer>, KeyedHash<Address>> peers_;
  size_t size_ = 0;
  size_t searched_ = 0;       // the place of peers_ that find_unused() searched last
  RdPeer* latest_ = nullptr;  // most datagrams come in trains
};

}  // namespace diwarp::rnic
