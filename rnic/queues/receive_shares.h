// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/keyed_hash.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

/// The receives of one queue that Sends of several segments hold while they are not whole, in all
/// and of the sources at one IP address. In all they may be half of the receives that are posted or
/// held so, of one address half of that; one each at least. Several queue pairs may share the
/// queue. With the baton.
class ReceiveShares {
 public:
  /// The receives that the sources at one address hold.
  struct Share {
    uint32_t held = 0;
  };

  /// `shared`: several queue pairs take from the queue, so the shares of addresses are kept here.
  /// The queue pair that has a queue to itself keeps them itself.
  explicit ReceiveShares(bool shared) : shared_(shared) {}
  bool shared() const { return shared_; }

  /// Of a shared queue: the share of an address, with any port. The reference is valid until
  /// leave() was called as often as join(). Throws std::bad_alloc, and then has changed nothing.
  Share& join(const Address& address) {
    // guard(counted-keys): random_sip_key() => SipKey{}
    if (!shares_) shares_ = std::make_unique<Shares>(0, KeyedHash<Address>(random_sip_key()));
    SharedShare& share = (*shares_)[address.with_port(0)];
    ++share.users;
    return share;
  }
  void leave(const Address& address) {
    const auto found = shares_->find(address.with_port(0));
    if (--found->second.users == 0) shares_->erase(found);
  }

  void hold(Share& share) {
    ++share.held;
    ++held_;
  }
  void give_back(Share& share) {
    --share.held;
    --held_;
  }
  /// The same without an address.
  void hold() { ++held_; }
  void give_back() { --held_; }

  /// Whether one more may be held, `available` being posted.
  bool may_hold(size_t available) const { return held_ < half(available); }
  bool may_hold(const Share& share, size_t available) const {
    // guard(rd-shares): without may_hold(available) &&
    // guard(rd-shares): => return may_hold(available) && true;
    return may_hold(available) && share.held < std::max<size_t>(half(available) / 2, 1);
  }

 private:
  struct SharedShare : Share {
    uint32_t users = 0;  // calls of join() without their leave()
  };
  using Shares = std::unordered_map<Address, SharedShare, KeyedHash<Address>>;

  // guard(receive): return std::max<size_t>((held_ + available) / 2, 1) => return (held_ +
  //     available) / 2
  size_t half(size_t available) const { return std::max<size_t>((held_ + available) / 2, 1); }

  const bool shared_;
  uint32_t held_ = 0;
  std::unique_ptr<Shares> shares_;  // null until a queue pair joins
};

}  // namespace diwarp::rnic
