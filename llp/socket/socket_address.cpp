// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/socket_address.h"

#include <cstring>

#include "base/mapped_address.h"

namespace diwarp::llp {
namespace {

const sockaddr* generic(const sockaddr_storage& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

using NameCall = int (*)(int, sockaddr*, socklen_t*);

Address name_of(int fd, NameCall call) {
  sockaddr_storage name;
  socklen_t length = sizeof name;
  if (call(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) return {};
  return from_socket_address(name, length);
}

}  // namespace

socklen_t to_socket_address(const Address& address, sa_family_t family, sockaddr_storage& target) {
  if (family != AF_INET6 || address.family() == AddressFamily::ipv6) {
    return address.to_sockaddr(target);
  }
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(address.port());
  std::memcpy(&mapped.sin6_addr, kMappedPrefix.data(), kMappedPrefix.size());
  std::memcpy(&mapped.sin6_addr.s6_addr[kMappedPrefix.size()], address.bytes().data(), 4);
  std::memcpy(&target, &mapped, sizeof mapped);
  return sizeof mapped;
}

Address from_socket_address(const sockaddr_storage& source, socklen_t length) {
  if (length < sizeof(sockaddr_in)) return {};
  if (source.ss_family != AF_INET && source.ss_family != AF_INET6) return {};
  return unmapped(Address::from_sockaddr(generic(source)));
}

Address local_address_of(int fd) { return name_of(fd, ::getsockname); }
Address peer_address_of(int fd) { return name_of(fd, ::getpeername); }

int socket_option(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

bool set_socket_option(int fd, int level, int name, int value) {
  return ::setsockopt(fd, level, name, &value, sizeof value) == 0;
}

bool set_multicast_interface(int fd, AddressFamily family, uint32_t interface) {
  const int index = static_cast<int>(interface);
  if (family == AddressFamily::ipv6) {
    return set_socket_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, index);
  }
  ip_mreqn request{};
  request.imr_ifindex = index;
  return ::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) == 0;
}

}  // namespace diwarp::llp
