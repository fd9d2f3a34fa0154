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
#include "rnic/rd_cursor.h"
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

/// A Send of the peer that is not whole yet.
struct RdMessage {
  ReceiveEntry* receive = nullptr;  ///< null: there is none
  uint32_t msn = 0;
  uint64_t placed = 0;
  Time last_progress{};
  MessageFacts facts;
};

class RdPeer;
struct RdHost;

/// Where there was no memory to deliver or to send a datagram, it is tried again after so long.
inline constexpr Duration kRdMemoryRetry = std::chrono::milliseconds(10);

/// Who is told that a peer's timer has fired. The peer may be gone afterwards.
class RdTimerOwner {
 public:
  virtual void on_peer_timer(RdPeer& peer, Time now) = 0;

 protected:
  ~RdTimerOwner() = default;
};

/// All that an RD queue pair knows of one peer. At most 1,152 bytes while it is idle. Data of the queue
/// pair's parts; with the baton.
class RdPeer : public ListNode<RdReadyTag>,
               public ListNode<RdSoonTag>,
               public ListNode<RdTouchedTag>,
               public ListNode<RdHeldTag> {
 public:
  RdPeer(RdTimerOwner& owner, RdHost& its_host, const Address& address, uint32_t window)
      : receiver(window), host(its_host), owner_(owner) {
    source.key.address = address;
  }

  const Address& address() const { return source.key.address; }

  /// Something of the peer is awaited: silence is then not to be borne for ever.
  bool awaited() const;
  /// The same, but beyond what was sent and is not acknowledged.
  bool more_awaited() const {
    return reads != nullptr || (cursor.has_work() && !sender.window_open());
  }

  dgram::Association association;
  dgram::Sender sender;
  dgram::Receiver receiver;
  RecordSource source;  ///< for records; its key names the peer
  RdHost& host;
  std::unique_ptr<RdPeer> older;  ///< another incarnation at the same address and port

  // What is sent.
  SendEntry* first = nullptr;  ///< posted and not done, in order
  SendEntry* last = nullptr;
  RdCursor cursor;
  OutboundRead* reads = nullptr;   ///< unanswered, in the order of their requests
  InboundRead* inbound = nullptr;  ///< to be answered, or not acknowledged
  uint32_t inbound_count = 0;
  bool open_wanted = false;  ///< these are to be sent
  bool probe_wanted = false;
  bool rewound = false;       ///< what is not done was begun in an association that has ended
  uint8_t fruitless = 0;      ///< how often that was, since anything of it was done
  SizeRefusals size_refusals;  ///< since a fresh datagram was sent

  // What comes.
  uint32_t delivered_msn = 0;  ///< of the last Send
  RdMessage message;
  TerminateCode refusal;
  bool refusing = false;       ///< the next datagram was refused, and the peer does not know yet
  bool held = false;           ///< the next datagram waits, and so do those behind it
  /// A message whose rest is ignored: it was refused or skipped, or was delivered before.
  std::optional<dgram::MessageName> voided = {};
  std::optional<dgram::MessageName> refused = {};  ///< the last message that was, with `refusal`
  /// A Send that was given up for want of progress, and will be refused.
  std::optional<dgram::MessageName> expired = {};
  bool has_delivered = false;  ///< a Send, of this incarnation
  bool repeats = false;        ///< an association ended, and nothing that is new came in the next

  // Time.
  Time last_heard{};
  Time last_used{};      ///< from this side
  Time waiting_since{};  ///< not before this time was anything awaited
  Time delivered_at{};   ///< last, in any association
  Time acknowledge_at = Time::max();
  Time retry_at = Time::max();  ///< something waits for memory
  bool has_memory = false;  ///< beyond what an idle peer has

 private:
  void on_timer(Time now) { owner_.on_peer_timer(*this, now); }
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
      for (RdPeer* peer = newest.get(); peer != nullptr; peer = peer->older.get()) visit(*peer);
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
