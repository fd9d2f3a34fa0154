// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/port_reservation.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "compat/common/addresses.h"
#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

/// The listener that comes sets SO_REUSEADDR as well, so that both may have the port.
void bind_socket(int socket, const Address& address, bool ipv6_only) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AddressFamily::ipv6) {
    const int alone = ipv6_only || !address.is_any() ? 1 : 0;
    ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &alone, sizeof alone);
  }
  sockaddr_storage name{};
  const socklen_t length = address.to_sockaddr(name);
  refuse_by_errno_if(::bind(socket, reinterpret_cast<const sockaddr*>(&name), length) != 0);
}

Address name_of(int socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  refuse_by_errno_if(::getsockname(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

}  // namespace

PortReservation::PortReservation(const Address& address, bool ipv6_only)
    : socket_(::socket(address.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6,
                       SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  refuse_by_errno_if(socket_ < 0);
  try {
    bind_socket(socket_, address, ipv6_only);
    address_ = name_of(socket_);
  } catch (...) {
    ::close(socket_);
    throw;
  }
}

PortReservation::PortReservation(PortReservation&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), address_(other.address_) {}

PortReservation::~PortReservation() {
  if (socket_ >= 0) ::close(socket_);
}

}  // namespace diwarp::compat
