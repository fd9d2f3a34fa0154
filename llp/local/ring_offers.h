// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "llp/local/connection_set.h"
#include "llp/local/local_settings.h"
#include "llp/local/ring_user.h"

namespace diwarp::llp {

/// The producer's side of meeting: finds the device that has a queue pair, and offers it a ring.
///
/// A search asks all devices that may have the address, at once, so that one that is silent holds
/// up no other. Those that say yes are offered a ring, one after the other, two sweeps each. It
/// ends with a ring, or when nobody is left.
class RingOffers {
 public:
  RingOffers(ConnectionSet& connections, const LocalSettings& settings, Counters& counters)
      : connections_(connections), settings_(settings), counters_(counters) {}

  /// `number`: the user's of the address that the route begins at (Destination::local).
  void seek(RingUser& user, const LocalRoute& route, uint32_t number);
  void forget(const RingUser& user);
  /// There is something on a connection of this side's.
  void take(const std::shared_ptr<LocalConnection>& connection);

  /// Once a second: ends what takes too long, rings that were not used, and connections that nobody
  /// needs.
  void sweep();
  bool idle() const { return searches_.empty() && peers_.empty(); }
  /// Whether an answer is due.
  bool waits() const { return !searches_.empty(); }

 private:
  struct Peer {
    std::string name;
    std::shared_ptr<LocalConnection> connection;
  };
  struct Search {
    uint32_t number = 0;
    RingUser* user = nullptr;
    LocalRoute route;
    uint32_t local = 0;
    std::vector<const LocalConnection*> asked;              // that have not answered
    std::vector<std::shared_ptr<LocalConnection>> willing;  // that said yes, and wait
    std::shared_ptr<LocalConnection> chosen;                // was offered the ring
    SharedMemory memory;                                    // of the ring
    UniqueFd descriptor;
    uint32_t sweeps = 0;
  };

  struct Writer {
    std::weak_ptr<RingOut> ring;  // gone where the user has dropped it
    RingUser* user = nullptr;
  };

  /// Of devices at one address.
  struct Names {
    Address device;
    std::bitset<kMaxLocalNames> taken;
  };

  size_t rings();
  bool has_place();
  std::bitset<kMaxLocalNames>& names_of(const Address& device);
  void tell_room(const LocalConnection& connection);
  bool ask(Search& search, const std::string& name, UniqueFd& spare);
  std::shared_ptr<LocalConnection> connection_to(const std::string& name, UniqueFd& spare);
  void answer(const std::shared_ptr<LocalConnection>& connection, const LocalPacket& packet);
  void tell_refused(const std::string& name);
  void go_on(Search& search, RingRefusal why);
  bool offer(Search& search);
  void end_ring(LocalConnection& connection, uint32_t number);
  void give_up(Search& search);
  void finish(Search& search, bool consumer_wants_crc);
  void fail(Search& search, RingRefusal why);
  void lose(const LocalConnection& connection);
  void end_search(const Search& search);
  void close_unused();

  ConnectionSet& connections_;
  const LocalSettings& settings_;
  Counters& counters_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Search>> searches_;
  std::vector<Writer> writers_;
  std::vector<Names> names_;  // since the last sweep
  uint32_t next_number_ = 0;
};

}  // namespace diwarp::llp
