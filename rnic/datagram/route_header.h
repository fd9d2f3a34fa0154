// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "ddp/protection_context.h"
#include "diwarp/address.h"
#include "diwarp/datagram_options.h"

namespace diwarp::rnic {

/// A Global Route Header (InfiniBand Architecture, section 8.3) of a message of `payload` bytes: it
/// names the two addresses, IPv4 ones mapped into IPv6 (RFC 4291 section 2.5.5.2). The length is 0
/// where 16 bits do not hold it.
std::array<std::byte, kRouteHeaderBytes> encode_route_header(const Address& source,
                                                             const Address& destination,
                                                             uint64_t payload);

/// The Global Route Headers that a queue pair with DatagramOptions::route_header puts before the
/// messages in its receives. With the baton.
class RouteHeaders {
 public:
  /// The queue pair's address that the peer sent to: of the group with this number, where that is
  /// not 0, else the one that the link knows by `local`.
  using Destination = std::function<Address(uint32_t group, uint32_t local)>;
  explicit RouteHeaders(Destination destination) : destination_(std::move(destination)) {}

  /// Writes one to the front of a receive in which the message of `payload` bytes is whole, and
  /// whose memory was checked as it is now. Returns its length.
  uint64_t write(const ddp::PlacementTarget& receive, const Address& source, uint32_t group,
                 uint32_t local, uint64_t payload) const;

 private:
  const Destination destination_;
};

/// Bytes that stand before the message in a receive, where it has a header or has none.
inline uint32_t headroom_of(const RouteHeaders* headers) {
  return headers != nullptr ? static_cast<uint32_t>(kRouteHeaderBytes) : 0;
}

}  // namespace diwarp::rnic
