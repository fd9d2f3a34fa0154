// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/timer_queue.h"
#include "diwarp/attributes.h"
#include "llp/rd_association.h"
#include "llp/rd_receiver.h"
#include "llp/rd_sender.h"
#include "rdmap/datagram.h"
#include "rnic/size_refusals.h"
#include "rnic/ud_sources.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

struct RdReadyTag;
struct RdSoonTag;
struct RdTouchedTag;
struct RdHeldTag;

/// What an RdMark means by `what`: what the datagram carries.
enum class RdWhat : uint8_t {
  segment,   ///< of a Send or Write-Record: object is its SendEntry
  request,   ///< a Read Request: object is its RdRead, tag its MSN
  response,  ///< a part of a Read Response: object is its RdJob
  failure,   ///< the end of a response: object is its RdJob
  skip,      ///< nothing any more
};
inline RdWhat what(const llp::RdMark& mark) { return static_cast<RdWhat>(mark.what); }

/// A Read of this side that was handed over.
struct RdRead {
  RdRead* next = nullptr;
  SendEntry* entry = nullptr;
  STag sink = 0;
  uint64_t received = 0;  ///< bytes, from the beginning
};

/// A Read Request of the peer that is being answered.
struct RdJob {
  RdJob* next = nullptr;
  rdmap::ReadRequest request;
  bool failed = false;  ///< the rest of the response is a failure
  llp::RdCode code;
};

/// How far a peer's work has been cut into datagrams.
struct RdCursor {
  SendEntry* entry = nullptr;  ///< the next to be cut; null: none is posted
  uint64_t offset = 0;
  RdJob* job = nullptr;  ///< the same of responses
  uint32_t job_offset = 0;
  uint32_t requests = 0;     ///< Read Requests that are unanswered
  uint32_t request_msn = 0;  ///< of the next one
  bool job_next = false;     ///< whose turn it is, where there are both
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
  bool more_awaited() const { return reads != nullptr || (has_work() && !sender.window_open()); }
  bool has_work() const { return cursor.entry != nullptr || cursor.job != nullptr; }

  llp::RdAssociation association;
  llp::RdSender sender;
  llp::RdReceiver receiver;
  RecordSource source;  ///< for records; its key names the peer

  // What is sent.
  SendEntry* first = nullptr;  ///< posted and not done, in order
  SendEntry* last = nullptr;
  RdCursor cursor;
  RdRead* reads = nullptr;  ///< of these entries, those that are Reads
  RdJob* jobs = nullptr;    ///< to be answered, or not acknowledged
  uint32_t job_count = 0;
  uint32_t orphans = 0;      ///< requests under way whose Read is over
  bool open_wanted = false;  ///< these are to be sent
  bool probe_wanted = false;
  SizeRefusals size_refusals;  ///< since a fresh datagram was sent

  // What comes.
  uint32_t delivered_msn = 0;  ///< of the last Send
  RdMessage message;
  llp::RdCode refusal;
  bool refusing = false;       ///< the next datagram was refused, and the peer does not know yet
  bool held = false;           ///< the next datagram waits, and so do those behind it
  bool ignoring = false;       ///< the rest of a message that was refused, skipped or repeated
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
static_assert(sizeof(RdPeer) <= 900, "with what the table and the allocator add, 1 KiB");

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
