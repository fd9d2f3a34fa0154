// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "dgram/reorder_buffer.h"
#include "diwarp/address.h"
#include "rnic/datagram/rd/rd_path.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/queues/receive_shares.h"

namespace diwarp::rnic {

class RdPeer;
class RdShareQueue;
struct RdHeldTag;
struct RdWaitingTag;

/// The services that the peers need of the queue pair that they belong to.
class RdPeerOwner {
 public:
  /// The peer's timer has fired. The peer may be gone afterwards.
  virtual void on_peer_timer(RdPeer& peer, Time now) = 0;
  /// Makes sure that one more timer can be armed. Throws std::bad_alloc.
  virtual void add_timer_place() = 0;
  virtual void remove_timer_place() = 0;
  /// The table is full. Forgets a peer at another address that is not in use; false where none was
  /// found.
  virtual bool forget_for(const Address& newcomer, Time now) = 0;

 protected:
  ~RdPeerOwner() = default;
};

/// The objects that all hosts of an RD queue pair use.
struct RdHostContext {
  RdPeerOwner& owner;
  RdShareQueue& waiting;
  ReceiveShares& shares;
};

/// The common state of all peers of an RD queue pair at one IP address, with whatever port. With
/// the baton.
class RdHost : public ListNode<RdWaitingTag> {
 public:
  /// `shared`: the share of the address in context.shares; null where it keeps none.
  RdHost(RdHostContext& context, ReceiveShares::Share* shared)
      : context_(context), share_(shared != nullptr ? *shared : own_share_) {}
  RdHost(const RdHost&) = delete;
  RdHost& operator=(const RdHost&) = delete;

  RdPeerOwner& owner() { return context_.owner; }

  /// A Send of one of them holds a receive until it is whole.
  void hold_receive();
  void give_back_receive();
  /// Whether one more of them may do so, `available` receives being posted.
  bool may_hold(size_t available) const { return context_.shares.may_hold(share_, available); }
  bool holds_none() const { return held_ == 0; }

  dgram::BufferShare buffered;
  StagRecord stags;
  RdPath path;
  uint32_t peers = 0;

 private:
  friend class RdShareQueue;

  ReceiveShares::Share own_share_;
  RdHostContext& context_;
  ReceiveShares::Share& share_;
  uint32_t held_ = 0;                         // receives, by this queue pair
  IntrusiveList<RdPeer, RdHeldTag> waiters_;  // whose Sends wait for a share; longest first
};

/// The peers whose Sends wait for a share of the receives. The next one is of an address that holds
/// none, if there is one; otherwise the addresses take turns. The cost of finding it does not grow
/// with the number of peers that wait: while one more receive may be held at all, the addresses
/// that may not hold it are few, since each of them holds a quarter of the receives. With the
/// baton.
class RdShareQueue {
 public:
  explicit RdShareQueue(const ReceiveShares& shares) : shares_(shares) {}

  void add(RdPeer& peer);
  bool empty() const { return without_.empty() && with_.empty(); }
  /// The next one that may hold a receive, `available` being posted; null where there is none.
  RdPeer* next(size_t available);

 private:
  friend class RdHost;
  using Hosts = IntrusiveList<RdHost, RdWaitingTag>;

  // guard(rd-shares): without host.holds_none() ? without_ :
  Hosts& place_of(const RdHost& host) { return host.holds_none() ? without_ : with_; }
  void move_to_back(RdHost& host);
  static RdPeer* next_of(Hosts& hosts, size_t available);

  const ReceiveShares& shares_;
  // Those of whose peers some wait, and some whose peers do not wait any more.
  Hosts without_;  // that hold no receive
  Hosts with_;
};

}  // namespace diwarp::rnic
