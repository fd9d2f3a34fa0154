// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/keyed_hash.h"
#include "base/timer_queue.h"
#include "diwarp/attributes.h"
#include "dgram/association.h"
#include "dgram/receiver.h"
#include "dgram/sender.h"
#include "rdmap/datagram.h"
#include "rnic/forward_list.h"
#include "rnic/rd_cursor.h"
#include "rnic/rd_peer_state.h"
#include "rnic/size_refusals.h"
#include "rnic/ud_sources.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

struct RdReadyTag;
struct RdSoonTag;
struct RdTouchedTag;
struct RdHeldTag;

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

class RdPeer;
struct RdHost;

/// Who is told that a peer's timer has fired. The peer may be gone afterwards.
class RdTimerOwner {
 public:
  virtual void on_peer_timer(RdPeer& peer, Time now) = 0;

 protected:
  ~RdTimerOwner() = default;
};

/// All that an RD queue pair knows of one peer, in parts that own their fields. At most 1,152 bytes
/// while it is idle. With the baton.
class RdPeer : public ListNode<RdReadyTag>,
               public ListNode<RdSoonTag>,
               public ListNode<RdTouchedTag>,
               public ListNode<RdHeldTag> {
 public:
  RdPeer(RdTimerOwner& owner, RdHost& its_host, const Address& address, uint32_t window, Time now)
      : receiver(window), host(its_host), times(now), owner_(owner) {
    source.key.address = address;
  }

  const Address& address() const { return source.key.address; }

  /// Something of the peer is awaited: after long silence it is given up.
  bool awaited() const;
  /// The same, but beyond what was sent and is not acknowledged.
  bool more_awaited() const {
    return !reads.empty() || (cursor.has_work() && !sender.window_open());
  }
  /// Something is to be sent to the peer, or requests are not done.
  bool has_work() const { return !requests.empty() || cursor.has_work(); }
  /// Whether it holds memory beyond what an idle peer has, and could give it back.
  bool has_spare_memory() const {
    return receiver.kept() == 0 && (sender.has_memory() || receiver.has_memory());
  }
  /// From now on it is another incarnation.
  void replace_incarnation(uint32_t incarnation) {
    source.closed_records = ddp::ClosedMessages();
    source.key.incarnation = incarnation;
    inbound.incarnation_replaced();
  }

  dgram::Association association;
  dgram::Sender sender;
  dgram::Receiver receiver;
  RecordSource source;  ///< for records; its key names the peer
  RdHost& host;

  // What is sent.
  ForwardList<SendEntry> requests;         ///< posted and not done
  ForwardList<OutboundRead> reads;         ///< unanswered, in the order of their requests
  ForwardList<InboundRead> inbound_reads;  ///< to be answered, or not acknowledged
  RdCursor cursor;
  RdSigns signs;
  RdRewinds rewinds;
  SizeRefusals size_refusals;  ///< since a fresh datagram was sent

  // What comes.
  RdInbound inbound;
  RdTurn turn;

  RdTimes times;

 private:
  friend class RdPeers;
  void on_timer(Time now) { owner_.on_peer_timer(*this, now); }

  std::unique_ptr<RdPeer> older_;  // another incarnation at the same address and port
  RdTimerOwner& owner_;

 public:
  MemberTimer<RdPeer, &RdPeer::on_timer> timer{*this};
};
static_assert(sizeof(RdPeer) <= 1024, "with what the table and the allocator add, 1 KiB");

/// What all peers at one address, with whatever port, have together.
struct RdHost {
  uint32_t peers = 0;
  uint32_t unfinished = 0;  ///< Sends that hold a receive and are not whole
};

/// The peers, by address and port. Several at one of these are incarnations that are, or were, there
/// at the same time: those that reach this queue pair by several of its own addresses, and those
/// that have restarted. New work goes to the one that was added last. The hash is keyed, so that
/// nobody can choose addresses that fall together. With the baton.
class RdPeers {
 public:
  /// Incarnations at one address and port that are remembered.
  static constexpr uint32_t kMaxIncarnations = 4;

  RdPeers(RdTimerOwner& owner, const ReliableOptions& options);

  /// The one that new work goes to.
  RdPeer* find(const Address& address);
  /// The one whose association has this name here, or else the one that new work goes to.
  RdPeer* find_by_epoch(const Address& address, uint32_t epoch);
  /// The one whose association is established with this incarnation of it, or else the one that new
  /// work goes to.
  RdPeer* find_by_incarnation(const Address& address, uint32_t incarnation);
  /// The next one, of those at the address of `peer`; null after the last.
  static RdPeer* next_incarnation(const RdPeer& peer) { return peer.older_.get(); }
  /// Null where there is no room, or no memory, for another.
  RdPeer* find_or_add(const Address& address, Time now);
  /// Another incarnation at the address of `present`, to which new work goes from now on. Null as
  /// above, and where there are too many.
  RdPeer* add_beside(RdPeer& present, Time now);
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
  IntrusiveList<RdPeer, RdHeldTag> without_receive;  ///< held; longest first
  IntrusiveList<RdPeer, RdHeldTag> without_share;    ///< the same, of receives for unfinished Sends
  IntrusiveList<RdPeer, RdHeldTag> without_room;     ///< the same, to report a record

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [address, newest] : peers_)
      for (RdPeer* peer = newest.get(); peer != nullptr; peer = peer->older_.get()) visit(*peer);
  }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<RdPeer> make(const Address& address, Time now);

  RdTimerOwner& owner_;
  const uint32_t max_peers_;
  const uint32_t max_per_address_;
  const uint32_t window_;
  template <class Tag>
  static void put(IntrusiveList<RdPeer, Tag>& list, RdPeer& peer) {
    if (!static_cast<ListNode<Tag>&>(peer).linked()) list.push_back(peer);
  }

  std::unordered_map<Address, RdHost, KeyedHash<Address>> hosts_;  // with port 0
  std::unordered_map<Address, std::unique_ptr<RdPeer>, KeyedHash<Address>> peers_;
  size_t size_ = 0;
  RdPeer* latest_ = nullptr;  // most datagrams come in trains
};

}  // namespace diwarp::rnic
