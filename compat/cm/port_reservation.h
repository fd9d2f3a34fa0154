// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

namespace diwarp::compat {

/// A TCP port that an id was bound to and does not listen on yet: others are not given it, and
/// whether it may be had is known at once.
class PortReservation {
 public:
  /// Port 0: a free one. Throws Refusal(EADDRINUSE), (EACCES), (EADDRNOTAVAIL).
  /// Of "::" for IPv4 as well, unless `ipv6_only`.
  PortReservation(const Address& address, bool ipv6_only);
  PortReservation(PortReservation&& other) noexcept;
  PortReservation& operator=(PortReservation&&) = delete;
  ~PortReservation();

  const Address& address() const { return address_; }

 private:
  int socket_;
  Address address_;
};

}  // namespace diwarp::compat
