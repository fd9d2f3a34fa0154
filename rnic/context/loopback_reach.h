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

  /// Counts it, by whatever thread.
  bool refuses(const Address& to) noexcept {
    if (!is_loopback_ || to.is_loopback()) return false;
    if (is_of_this_host(to.with_port(0))) return false;
    counters_.add_shared(Counter::loopback_to_remote);
    return true;
  }

 private:
  /// The last one that was is remembered, as asking costs some system calls. Where the system does
  /// not tell, it is for sending to fail.
  bool is_of_this_host(const Address& to) noexcept try {
    if (to == reached_) return true;
    const auto own = host_addresses();
    if (!own.empty() && std::ranges::find(own, to) == own.end()) return false;
    reached_ = to;
    return true;
  } catch (const std::exception&) {
    return true;
  }

  Counters& counters_;
  const bool is_loopback_;
  Address reached_;
};

}  // namespace diwarp::rnic
