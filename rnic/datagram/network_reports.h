// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "dgram/identity.h"
#include "diwarp/attributes.h"
#include "llp/datagram_link.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/error_reports.h"

namespace diwarp::rnic {

/// Tells the application, by counters, its error queue and the log, what becomes of datagrams in
/// the network and in the host. Much of it can be forged, and all of it can come in floods: nothing
/// else follows from it, and error queue and log get a few entries a second. With the baton.
class NetworkReports {
 public:
  /// Entries of the error queue in a second, and at once.
  static constexpr uint32_t kEntriesPerSecond = 10;

  NetworkReports(ErrorReports& errors, dgram::Identity& identity, const LoggedCounters& counters)
      : errors_(errors), identity_(identity), counters_(counters) {}

  /// One that quotes what this queue pair has not sent is dropped; one that quotes too little for
  /// that to be seen is not. It may be told amid a burst: it throws nothing.
  void icmp(const llp::IcmpReport& report, Time now) noexcept;
  /// The receive buffer had no room for so many datagrams.
  void overflowed(uint64_t datagrams, Time now) noexcept;
  /// Datagrams of this size to the peer vanish, and smaller ones do not. The largest are of
  /// `smaller` bytes from now on; 0: of the same size. That cannot be forged, and is rare.
  void black_hole(const Address& peer, uint32_t datagram_bytes, uint32_t smaller) noexcept;

 private:
  void inform(const DatagramError& error) noexcept;

  ErrorReports& errors_;
  dgram::Identity& identity_;
  const LoggedCounters& counters_;
  RateLimit limit_{kEntriesPerSecond};
};

}  // namespace diwarp::rnic
