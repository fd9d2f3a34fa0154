// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <new>
#include <optional>

#include "diwarp/error.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/local_addresses.h"
#include "llp/udp/udp_link.h"
#include "llp/udp/udp_open.h"

namespace diwarp::llp {
namespace {

bool connect_to(int fd, const Address& peer, sa_family_t family) {
  sockaddr_storage name;
  const socklen_t length = to_socket_address(peer, family, name);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0;
}

/// The number that tells the networks (namespaces) of a host apart; nothing where the kernel has no
/// such thing.
std::optional<uint64_t> network_of(int fd) {
  uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (::getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length) != 0) return std::nullopt;
  return cookie;
}

/// A socket at the address of a bound one, with so much room for what comes from then on. Throws
/// Error.
UniqueFd bound_beside(int first, const Address& local, size_t receive_buffer) {
  UniqueFd fd = open_udp_socket(local);
  if (network_of(fd.get()) != network_of(first))  // guard(second-socket-network): fd.get() => first
    throw Error(Errc::unsupported_operation, "The thread has gone to another network namespace");
  set_buffer(fd.get(), SO_RCVBUFFORCE, SO_RCVBUF, receive_buffer);
  // guard(second-socket)
  set_socket_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);  // sockets of groups come to the port
  const SharedPort sharing(first, SO_REUSEPORT);
  const SharedPort joining(fd.get(), SO_REUSEPORT);
  bind_udp_socket(fd.get(), local);
  return fd;
}

}  // namespace

std::unique_ptr<UdpLink> UdpLink::beside(const Destination& peer) const {
  try {
    const bool at_one = socket_.locals != nullptr && peer.local != 0;
    // guard(second-socket-address): => const Address local = socket_.local;
    const Address local =
        at_one ? socket_.locals->at(peer.local).with_port(socket_.local.port()) : socket_.local;
    UniqueFd fd = bound_beside(socket_.fd.get(), local, options_.receive_buffer);
    const auto family = static_cast<sa_family_t>(socket_option(fd.get(), SOL_SOCKET, SO_DOMAIN));
    if (!connect_to(fd.get(), peer.address, family)) return nullptr;
    std::unique_ptr<UdpLink> link(new UdpLink(std::move(fd), options_));
    link->socket_.connected = true;
    if (socket_.locals != nullptr)
      link->socket_.local_number = socket_.locals->number_of(link->socket_.local.with_port(0));
    return link;
  } catch (const Error&) {
    return nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// Connected to itself it hears nobody else. A datagram that a processor was about to put into the
/// socket at this moment may still come.
void UdpLink::turn_away() {
  const int fd = socket_.fd.get();
  connect_to(fd, local_address_of(fd), socket_.family);  // guard(second-socket-drained)
}

}  // namespace diwarp::llp
