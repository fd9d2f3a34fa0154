// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <exception>

#include "base/counters.h"
#include "base/host_addresses.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

/// Whether a destination can be reached from a loopback address: nothing that comes from one leaves
/// the host. Other addresses of the host's interfaces can.
class LoopbackReach {
 public:
  LoopbackReach(const Address& local, Counters& counters)
      : counters_(counters), is_loopback_(local.is_loopback()) {}

  /// Counts it, by whatever thread. The last destination that was not refused is remembered: each
  /// message is checked, and asking the system costs some calls.
  bool refuses(const Address& to) noexcept {
    if (!is_loopback_ || to == reached_) return false;
    return !reaches(to);
  }

 private:
  bool reaches(const Address& to) noexcept {
    if (!to.is_loopback() && !is_of_this_host(to.with_port(0))) {
      counters_.add_shared(Counter::loopback_to_remote);
      return false;
    }
    reached_ = to;
    return true;
  }
  /// Where the system does not tell, it is for sending to fail.
  static bool is_of_this_host(const Address& to) noexcept try {
    const auto own = host_addresses();
    return own.empty() || std::ranges::find(own, to) != own.end();
  } catch (const std::exception&) {
    return true;
  }

  Counters& counters_;
  const bool is_loopback_;
  Address reached_;
};

}  // namespace diwarp::rnic
