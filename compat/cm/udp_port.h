// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

#include <string>
#include <utility>

namespace diwarp::compat {

/// A UDP socket that an id of a UD service was bound to: its port is known at once, and no other
/// program gets it. A queue pair may have it instead of a socket of its own.
class UdpPort {
 public:
  /// Port 0: a free one. Throws Refusal(EADDRINUSE), (EACCES), (EADDRNOTAVAIL).
  explicit UdpPort(const Address& address);
  UdpPort(UdpPort&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), address_(other.address_) {}
  UdpPort& operator=(UdpPort&&) = delete;
  ~UdpPort();

  const Address& address() const { return address_; }
  /// The socket, which is the caller's from then on.
  int release() { return std::exchange(socket_, -1); }

 private:
  int socket_;
  Address address_;
};

/// The address of this host that datagrams to `peer` leave from, without a port. Sends nothing.
/// Throws Refusal, (ENETUNREACH) for example.
Address source_towards(const Address& peer);
/// The name of the interface that has this address; empty where there is none.
std::string interface_of(const Address& address);

}  // namespace diwarp::compat
