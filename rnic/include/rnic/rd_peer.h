// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/clock.h"
#include "base/intrusive_list.h"
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
  MessageFacts facts;
};

class RdPeer;

/// Who is told that a peer's timer has fired. The peer may be gone afterwards.
class RdTimerOwner {
 public:
  virtual void on_peer_timer(RdPeer& peer, Time now) = 0;

 protected:
  ~RdTimerOwner() = default;
};

/// All that an RD queue pair knows of one peer. At most 1 KiB while it is idle. Data of the queue
/// pair's parts; with the baton.
class RdPeer : public ListNode<RdReadyTag>,
               public ListNode<RdSoonTag>,
               public ListNode<RdTouchedTag>,
               public ListNode<RdHeldTag> {
 public:
  RdPeer(RdTimerOwner& owner, const Address& address, uint32_t window)
      : receiver(window), owner_(owner) {
    source.key.address = address;
  }

  const Address& address() const { return source.key.address; }

  /// Something of the peer is awaited: silence is then not to be borne for ever.
  bool awaited() const;
  /// The same, but beyond what was sent and is not acknowledged.
  bool more_awaited() const { return reads != nullptr || (cursor.has_work() && !sender.window_open()); }

  dgram::Association association;
  dgram::Sender sender;
  dgram::Receiver receiver;
  Source source;  ///< for records; its key names the peer

  // What is sent.
  SendEntry* first = nullptr;  ///< posted and not done, in order
  SendEntry* last = nullptr;
  RdCursor cursor;
  OutboundRead* reads = nullptr;   ///< unanswered, in the order of their requests
  InboundRead* inbound = nullptr;  ///< to be answered, or not acknowledged
  uint32_t inbound_count = 0;
  bool open_wanted = false;  ///< these are to be sent
  bool probe_wanted = false;
  SizeRefusals size_refusals;  ///< since a fresh datagram was sent

  // What comes.
  uint32_t delivered_msn = 0;  ///< of the last Send
  RdMessage message;
  TerminateCode refusal;
  bool refusing = false;       ///< the next datagram was refused, and the peer does not know yet
  bool held = false;           ///< the next datagram waits, and so do those behind it
  /// A message whose rest is ignored: it was refused or skipped, or was delivered before.
  std::optional<dgram::MessageName> voided = {};
  bool has_delivered = false;  ///< a Send, of this incarnation
  bool repeats = false;        ///< an association ended, and nothing that is new came in the next

  // Time.
  Time last_heard{};
  Time last_used{};      ///< from this side
  Time waiting_since{};  ///< not before this time was anything awaited
  Time delivered_at{};   ///< last, in any association
  Time acknowledge_at = Time::max();
  bool has_memory = false;  ///< beyond what an idle peer has

 private:
  void on_timer(Time now) { owner_.on_peer_timer(*this, now); }
  RdTimerOwner& owner_;

 public:
  MemberTimer<RdPeer, &RdPeer::on_timer> timer{*this};
};
static_assert(sizeof(RdPeer) <= 944, "with what the table and the allocator add, 1 KiB");

/// The peers, by address and port.
class RdPeers {
 public:
  using Map = std::unordered_map<Address, std::unique_ptr<RdPeer>>;

  RdPeers(RdTimerOwner& owner, uint32_t max_peers, uint32_t window)
      : owner_(owner), max_peers_(max_peers), window_(window) {}

  RdPeer* find(const Address& address);
  /// Null where there is no room for another.
  RdPeer* find_or_add(const Address& address, Time now);
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
  IntrusiveList<RdPeer, RdHeldTag> without_room;     ///< the same, to report a record

  Map::const_iterator begin() const { return peers_.begin(); }
  Map::const_iterator end() const { return peers_.end(); }
  size_t size() const { return peers_.size(); }

 private:
  RdTimerOwner& owner_;
  const uint32_t max_peers_;
  const uint32_t window_;
  template <class Tag>
  static void put(IntrusiveList<RdPeer, Tag>& list, RdPeer& peer) {
    if (!static_cast<ListNode<Tag>&>(peer).linked()) list.push_back(peer);
  }

  Map peers_;
  RdPeer* latest_ = nullptr;  // most datagrams come in trains
};

}  // namespace diwarp::rnic
