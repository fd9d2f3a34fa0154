// SPDX-License-Identifier: Apache-2.0
#include "common/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

void set_option(int fd, int level, int option) {
  const int on = 1;
  setsockopt(fd, level, option, &on, sizeof on);
}

/// `forced` is for the privileged; the other is cut to net.core.rmem_max or wmem_max.
void set_buffer(int fd, int forced, int option, size_t wanted) {
  const int bytes = static_cast<int>(std::min<size_t>(wanted, INT_MAX / 2));
  if (setsockopt(fd, SOL_SOCKET, forced, &bytes, sizeof bytes) == 0) return;
  setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof bytes);
}

[[noreturn]] void refuse_bind(const Address& address, int error) {
  if (error == EADDRINUSE) {
    throw Failure("Port " + std::to_string(address.port()) + " of " + address.host() +
                  " is in use: choose another, or end the program that holds it.");
  }
  if (error == EADDRNOTAVAIL) {
    throw Failure(address.host() + " is not an address of this host: diwarp-info lists them.");
  }
  throw Failure("Cannot listen at " + address.to_string() + ": " + std::strerror(error) + ".");
}

template <class Call>
Address address_from(int fd, Call call) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (call(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    throw PeerGone(std::string("The connection ended at once: ") + std::strerror(errno) + ".");
  }
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage));
}

}  // namespace

UniqueFd open_socket(const Address& peer, int type) {
  const int family = peer.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  UniqueFd fd(::socket(family, type | SOCK_CLOEXEC, 0));
  if (!fd) throw Failure(std::string("Cannot open a socket: ") + std::strerror(errno) + ".");
  if (family == AF_INET6) set_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY);
  return fd;
}

UniqueFd bound_socket(const Address& address, int type) {
  UniqueFd fd = open_socket(address, type);
  // A server may return to its port at once; for UDP the option would let two share it.
  if (type == SOCK_STREAM) set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR);
  sockaddr_storage storage{};
  const socklen_t length = address.to_sockaddr(storage);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0) {
    refuse_bind(address, errno);
  }
  return fd;
}

Address local_address_of(int fd) { return address_from(fd, ::getsockname); }
Address peer_address_of(int fd) { return address_from(fd, ::getpeername); }

Address local_address_to(const Address& peer) {
  const UniqueFd fd = open_socket(peer, SOCK_DGRAM);
  sockaddr_storage storage{};
  const socklen_t length = peer.to_sockaddr(storage);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0)
    throw Failure("There is no route to " + peer.host() + ": " + std::strerror(errno) + ".");
  return local_address_of(fd.get()).with_port(0);
}

uint16_t free_udp_port(const Address& address) {
  return local_address_of(bound_socket(address.with_port(0), SOCK_DGRAM).get()).port();
}

void set_receive_buffer(int fd, size_t wanted) {
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, wanted);
}

void set_send_buffer(int fd, size_t wanted) { set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, wanted); }

size_t granted_receive_buffer(const Address& address, size_t wanted) {
  const UniqueFd fd = open_socket(address, SOCK_DGRAM);
  set_receive_buffer(fd.get(), wanted);
  int granted = 0;
  socklen_t length = sizeof granted;
  getsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &granted, &length);
  // The kernel doubles what was asked for, to have room for its own bookkeeping.
  return static_cast<size_t>(granted) / 2;
}

void send_at_once(int fd) { set_option(fd, IPPROTO_TCP, TCP_NODELAY); }

}  // namespace diwarp::tools
