// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_open.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <system_error>

#include "diwarp/error.h"
#include "llp/socket/interfaces.h"
#include "llp/udp/udp_options.h"

namespace diwarp::llp {
namespace {

sa_family_t domain_of(const Address& address) {
  return address.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
}

[[noreturn]] void throw_bind_error(const Address& local, int error) {
  const std::string where = "UDP address " + local.to_string();
  if (error == EADDRINUSE) {
    throw Error(Errc::address_in_use, where + " cannot be bound, another socket holds it");
  }
  const std::error_code code(error, std::generic_category());
  if (error == EADDRNOTAVAIL) {
    throw Error(code, where + " cannot be bound: give an address of one of this host's interfaces");
  }
  if (error == EACCES) {
    throw Error(code, where + " cannot be bound: choose a port above 1023, or run with privilege");
  }
  throw Error(code, where + " cannot be bound");
}

[[noreturn]] void throw_socket_error(const Address& local, int error) {
  std::string message = "No socket could be made for UDP address " + local.to_string();
  if (error == EMFILE) {
    message +=
        ": raise the limit of descriptors (ulimit -n, RLIMIT_NOFILE), for each queue pair "
        "over datagrams takes one";
  }
  throw Error({error, std::generic_category()}, message);
}

/// Why the descriptor cannot serve as a link; nullptr when it can.
const char* unfit(int fd) {
  const int type = socket_option(fd, SOL_SOCKET, SO_TYPE);
  if (type < 0) return "is no socket";
  const int domain = socket_option(fd, SOL_SOCKET, SO_DOMAIN);
  if (domain != AF_INET && domain != AF_INET6) return "is neither an IPv4 nor an IPv6 socket";
  if (type != SOCK_DGRAM) return "is no datagram socket";
  if (socket_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP) return "does not speak UDP";
  if (local_address_of(fd).port() == 0) return "is not bound to a port";
  return nullptr;
}

}  // namespace

bool set_buffer(int fd, int forced, int plain, size_t bytes) {
  if (bytes == 0) return true;
  const int value = static_cast<int>(std::min<size_t>(bytes, INT_MAX / 2));
  if (!set_socket_option(fd, SOL_SOCKET, forced, value)) {
    set_socket_option(fd, SOL_SOCKET, plain, value);
  }
  return socket_option(fd, SOL_SOCKET, plain) / 2 >= value;  // it tells twice what one may fill
}

UniqueFd open_udp_socket(const Address& local) {
  const int type = SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
  UniqueFd fd(::socket(domain_of(local), type, IPPROTO_UDP));
  if (!fd) throw_socket_error(local, errno);
  if (local.family() == AddressFamily::ipv6) {
    set_socket_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, local.is_any() ? 0 : 1);
  }
  return fd;
}

void bind_udp_socket(int fd, const Address& local) {
  sockaddr_storage name;
  const socklen_t length = local.to_sockaddr(name);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    throw_bind_error(local, errno);
  }
}

UniqueFd bound_udp_socket(const Address& local, bool share) {
  UniqueFd fd = open_udp_socket(local);
  // Not with port 0: the system might choose a port that others share.
  if (share && local.port() != 0) set_socket_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  bind_udp_socket(fd.get(), local);
  return fd;
}

UniqueFd adoptable_udp_socket(int bound_descriptor, const UdpOptions& options) {
  if (const char* reason = unfit(bound_descriptor)) {
    throw Error(Errc::invalid_argument, "Descriptor " + std::to_string(bound_descriptor) + " " +
                                            reason + ": give a bound UDP socket");
  }
  // Asked before the descriptor is taken over, as it throws.
  if (!options.multicast_interface.empty()) interface_named(options.multicast_interface);
  return UniqueFd(bound_descriptor);
}

}  // namespace diwarp::llp
