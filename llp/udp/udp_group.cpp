// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_group.h"

#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "diwarp/error.h"
#include "llp/socket/interfaces.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/udp_open.h"

namespace diwarp::llp {
namespace {

[[noreturn]] void throw_join_error(const Address& group, int error) {
  const std::error_code code(error, std::generic_category());
  const std::string what = "Group " + group.host() + " cannot be joined";
  if (error == ENODEV) throw Error(code, what + ": no interface leads to it, name one");
  if (error == ENOBUFS)
    throw Error(code, what + ": the process is in as many groups as net.ipv4.igmp_max_memberships");
  throw Error(code, what);
}

/// With the interface as its scope where the address alone is ambiguous (RFC 4007 section 6).
Address scoped(const Address& group, uint32_t interface) {
  if (group.family() == AddressFamily::ipv4 || group.scope_id() != 0) return group;
  const bool local = (group.bytes()[1] & 0xF) <= 2;  // interface-local and link-local
  if (!local) return group;
  sockaddr_storage name{};
  group.to_sockaddr(name);
  sockaddr_in6 filled;
  std::memcpy(&filled, &name, sizeof filled);
  filled.sin6_scope_id = interface;
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&filled));
}

bool join_multicast(int fd, const Address& group, uint32_t interface) {
  if (group.family() == AddressFamily::ipv6) {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.bytes().data(), sizeof request.ipv6mr_multiaddr);
    request.ipv6mr_interface = interface;
    return ::setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) == 0;
  }
  ip_mreqn request{};
  std::memcpy(&request.imr_multiaddr, group.bytes().data(), sizeof request.imr_multiaddr);
  request.imr_ifindex = static_cast<int>(interface);
  return ::setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0;
}

bool bind_to_interface(int fd, uint32_t interface) {
  std::array<char, IF_NAMESIZE> name{};
  if (::if_indextoname(interface, name.data()) == nullptr) return false;
  const auto length = static_cast<socklen_t>(std::strlen(name.data()));
  return ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name.data(), length) == 0;
}

bool serves(const Address& local, AddressFamily family) {
  return local.family() == family || (local.family() == AddressFamily::ipv6 && local.is_any());
}

/// On the port of `first` both have to allow it.
void bind_group(const UdpSocket& first, int fd, const Address& bound) {
  std::optional<SharedPort> sharing;
  if (bound.port() == first.local.port()) sharing.emplace(first.fd.get(), SO_REUSEADDR);
  bind_udp_socket(fd, bound);
}

void demand_group(const Address& group, const Address& local) {
  const bool is_group =
      group.is_multicast() || group.is_broadcast() || interface_of_broadcast(group) != 0;
  if (!is_group) {  // guard(not-a-group): condition => false
    throw Error(Errc::invalid_argument,
                group.host() +
                    " is no group: give a multicast address, 255.255.255.255, or the "
                    "broadcast address of a subnet that this host is in");
  }
  if (!serves(local, group.family())) {  // guard(not-a-group): condition => false
    throw Error(Errc::invalid_argument,
                "Group " + group.host() + " is of the other address family than " + local.host());
  }
}

}  // namespace

UniqueFd open_group_socket(const UdpSocket& first, bool share_port, const Address& group,
                           std::string_view interface) {
  const Address& local = first.local;
  demand_group(group, local);
  const bool same_family = local.family() == group.family();
  uint32_t index = same_family ? interface_of(local) : 0;
  if (!interface.empty()) index = interface_named(interface);
  if (group.scope_id() != 0 && interface.empty()) index = group.scope_id();
  const uint16_t port = group.port() != 0 ? group.port() : local.port();
  const Address bound = scoped(group, index).with_port(port);

  UniqueFd fd = open_udp_socket(bound);
  set_socket_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (share_port) set_socket_option(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  // guard(broadcast): => const bool pinned = true;
  const bool pinned = group.is_multicast() || index == 0 || bind_to_interface(fd.get(), index);
  if (!pinned && !interface.empty()) throw_join_error(group, errno);
  bind_group(first, fd.get(), bound);
  if (group.is_multicast() && !join_multicast(fd.get(), group, index)) {
    throw_join_error(group, errno);
  }
  return fd;
}

}  // namespace diwarp::llp
