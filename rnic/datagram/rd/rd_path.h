// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "dgram/envelope.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

/// How long the datagrams to the peers at one address may be, where longer ones vanish on the way
/// although the link takes them. With the baton.
class RdPath {
 public:
  /// For so long (RFC 8899 section 5.1.1, PMTU_RAISE_TIMER): the path may be another then.
  static constexpr Duration kShortenedFor = std::chrono::seconds(600);

  /// The next shorter size, in bytes of UDP payload, for datagrams of `bytes`, which vanish: first
  /// what nearly all paths carry (RFC 8899 section 5.1.2, BASE_PLPMTU), then what all do. 0: there
  /// is none.
  static uint16_t shorter(const Address& peer, uint32_t bytes) {
    constexpr uint16_t kBase = 1200, kLeastIpv4 = 576 - 28, kLeastIpv6 = 1280 - 48;
    if (peer.family() == AddressFamily::ipv6) return bytes > kLeastIpv6 ? kLeastIpv6 : uint16_t{0};
    if (bytes > kBase) return kBase;
    return bytes > kLeastIpv4 ? kLeastIpv4 : uint16_t{0};
  }
  /// No datagram has more than `bytes` from now on.
  void shorten(uint16_t bytes, Time now) {
    longest_ = bytes;
    until_ = now + kShortenedFor;
  }
  /// The body of a datagram that may have `body` bytes as far as the link knows.
  size_t limit(size_t body, Time now) const {
    if (longest_ == 0 || now >= until_) return body;
    return std::min(body, dgram::Envelope::max_body(longest_));
  }

 private:
  Time until_{};
  uint16_t longest_ = 0;  // bytes; 0: no limit
};

}  // namespace diwarp::rnic
