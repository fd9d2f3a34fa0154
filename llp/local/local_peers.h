// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "llp/connector.h"
#include "llp/input_queue.h"
#include "llp/local/connection_set.h"
#include "llp/local/local_settings.h"
#include "llp/local/ring_acceptor.h"
#include "llp/local/ring_offers.h"
#include "llp/local/ring_user.h"
#include "llp/local/route_table.h"

namespace diwarp::llp {

/// The other devices of this host that one device meets, and the rings that lead there and back.
/// Its descriptor tells of all that comes from them but the datagrams themselves, and of those that
/// come into rings that sleep.
///
/// Users, links and streams, come and go with any thread; all else is for the holder of the
/// engine's baton.
class LocalPeers final : public InputQueue {
 public:
  /// Of a device at `address`; `connector` finds the addresses that datagrams leave from. Where all
  /// names are taken the device meets others, and is not met. Throws Error where the system gives
  /// no descriptor, or does not tell who made a socket.
  LocalPeers(const Address& address, const LocalSettings& settings, Connector& connector,
             Counters& counters, const Clock& clock);

  const LocalSettings& settings() const { return settings_; }

  // --- InputQueue.

  int descriptor() const override { return connections_.descriptor(); }
  void gather(bool told) override;
  void* next_ready() override;
  bool gathers_all() const override { return false; }
  Duration silence() override;

  // --- For users. Any thread.

  void add(RingUser& user);
  void remove(RingUser& user);

  // --- For users, with the baton.

  /// Looks for the device where `route` ends, of which the user will be told. Where it begins at
  /// any address, that is the system's choice. `number`: Destination::local.
  void seek(RingUser& user, LocalRoute route, uint32_t number);
  /// The user has something to hand out.
  void announce(RingUser& user) {
    if (user.key() != nullptr && !user.is_announced()) ready_.push_back(user);
  }
  Time now() const { return clock_.now(); }
  void count_sent(uint64_t datagrams, uint64_t bytes, uint64_t lost);

 private:
  void look();
  void sweep();
  bool is_idle() const;
  void take(const ConnectionSet::News& news);

  const LocalSettings settings_;
  Connector& connector_;
  Counters& counters_;
  const Clock& clock_;
  // With the baton.
  IntrusiveList<RingUser> ready_;
  IntrusiveList<RingUser> in_turn_;  // those of `ready_` that this gather() hands out
  uint32_t steps_ = 0;               // since the last look
  bool answer_is_due_ = false;
  Time next_sweep_ = Time::max();
  // With the mutex.
  std::mutex mutex_;
  ConnectionSet connections_;
  RouteTable users_;
  RingOffers offers_;
  RingAcceptor acceptor_;
};

}  // namespace diwarp::llp
