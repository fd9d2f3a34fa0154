// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counters.h"
#include "llp/local/connection_set.h"
#include "llp/local/local_settings.h"
#include "llp/local/ring_user.h"
#include "llp/local/route_table.h"

namespace diwarp::llp {

/// The consumer's side of meeting: tells who is here, takes rings that are offered to users of this
/// device, and wakes these.
class RingAcceptor {
 public:
  RingAcceptor(ConnectionSet& connections, const LocalSettings& settings, Counters& counters)
      : connections_(connections), settings_(settings), counters_(counters) {}

  void arrive(UniqueFd socket);
  /// There is something on a connection that arrived. `users`: of the device.
  void take(const std::shared_ptr<LocalConnection>& connection, RouteTable& users);
  void forget(const RingUser& user);
  /// Once a second: closes connections that brought no ring for some time.
  void sweep();

 private:
  struct Reader {
    std::weak_ptr<RingIn> ring;  // gone where the user has dropped it
    RingUser* user;
  };

  void handle(const std::shared_ptr<LocalConnection>& connection, const LocalPacket& packet,
              UniqueFd descriptor, RouteTable& users);
  RingRefusal accept(const std::shared_ptr<LocalConnection>& connection, const LocalPacket& offer,
                     UniqueFd descriptor, RouteTable& users);
  void tell_refused(const LocalRoute& route, RingRefusal why);
  size_t rings();
  template <class Visit>
  void each_over(const LocalConnection& connection, Visit&& visit);
  void lose(const LocalConnection& connection);

  ConnectionSet& connections_;
  const LocalSettings& settings_;
  Counters& counters_;
  std::vector<Reader> readers_;
};

}  // namespace diwarp::llp
