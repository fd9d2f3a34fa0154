// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <vector>

#include "stack/rc_support.h"

namespace diwarp::test {

/// Connections to a listener that keeps three requests: four of one address, of which one is
/// rejected, then an honest one of another address, for which a second one is.
struct FullListener {
  static constexpr size_t kRequests = 3;

  explicit FullListener(const Address& to) {
    std::array<pollfd, 4> watched{};
    for (pollfd& one : watched) {
      connections.push_back(connect_from(2, to));
      one = {connections.back().descriptor(), POLLIN, 0};
      REQUIRE(connections.back().send(to_bytes(MpaFrame{})));
    }
    REQUIRE(::poll(watched.data(), watched.size(), 30000) == 1);  // now the others wait
    connections.push_back(connect_from(3, to));
    REQUIRE(connections.back().send(to_bytes(MpaFrame{.private_data = text("honest")})));
    for (pollfd& one : watched)
      if (one.revents != 0) one.fd = -1;
    REQUIRE(::poll(watched.data(), watched.size(), 30000) == 1);
  }

  std::vector<RawStream> connections;
};

}  // namespace diwarp::test
