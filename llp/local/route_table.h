// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "base/intrusive_list.h"
#include "llp/local/local_packet.h"
#include "llp/local/ring_user.h"

namespace diwarp::llp {

/// The users of a device, by where routes end.
class RouteTable {
 public:
  void add(RingUser& user) { bucket(user.hash()).push_back(user); }
  void remove(RingUser& user) { bucket(user.hash()).remove(user); }

  /// Null: none serves it.
  RingUser* find(const LocalRoute& route) {
    Bucket& users = bucket(route_hash(route.kind, route.to.port(), route.from.port()));
    for (RingUser* user = users.front(); user != nullptr; user = users.next(*user))
      if (user->serves(route)) return user;
    return nullptr;
  }

 private:
  using Bucket = IntrusiveList<RingUser, RouteTag>;
  Bucket& bucket(uint32_t hash) { return buckets_[hash % buckets_.size()]; }

  std::array<Bucket, 509> buckets_;  // a prime, for ports may have a common divisor
};

}  // namespace diwarp::llp
