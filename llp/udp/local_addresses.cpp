// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/local_addresses.h"

#include <netinet/udp.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/mapped_address.h"
#include "llp/socket/socket_address.h"

namespace diwarp::llp {

Address address_in(const in_pktinfo& info) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr = info.ipi_addr;
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

/// A link-local address means another one on each interface (RFC 4007 section 6).
Address address_in(const in6_pktinfo& info) {
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  name.sin6_addr = info.ipi6_addr;
  if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr)) name.sin6_scope_id = info.ipi6_ifindex;
  return unmapped(Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name)));
}

void SendControl::add_segment_size(msghdr& header, size_t bytes) {
  const auto segment = static_cast<uint16_t>(bytes);
  add(header, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
}

/// A socket for both families takes an IPv4 address for what goes to one.
void SendControl::add_source(msghdr& header, const Address& local) {
  if (local.family() == AddressFamily::ipv4) {
    in_pktinfo info{};
    std::memcpy(&info.ipi_spec_dst, local.bytes().data(), sizeof info.ipi_spec_dst);
    return add(header, IPPROTO_IP, IP_PKTINFO, &info, sizeof info);
  }
  in6_pktinfo info{};
  std::memcpy(&info.ipi6_addr, local.bytes().data(), sizeof info.ipi6_addr);
  info.ipi6_ifindex = local.scope_id();
  add(header, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof info);
}

void SendControl::add(msghdr& header, int level, int type, const void* data, size_t size) {
  char* const place = bytes_.data() + header.msg_controllen;
  cmsghdr message{};
  message.cmsg_level = level;
  message.cmsg_type = type;
  message.cmsg_len = CMSG_LEN(size);
  std::memcpy(place, &message, sizeof message);
  std::memcpy(place + CMSG_LEN(0), data, size);
  header.msg_control = bytes_.data();
  header.msg_controllen += CMSG_SPACE(size);
}

uint32_t LocalAddresses::number_of(const Address& address) try {
  if (latest_ != 0 && at(latest_) == address) return latest_;
  const auto found = std::find(addresses_.begin(), addresses_.end(), address);
  const auto number = static_cast<uint32_t>(found - addresses_.begin()) + 1;
  if (found == addresses_.end()) {
    if (addresses_.size() == kMost) return 0;  // guard(many-local-addresses)
    addresses_.push_back(address);
  }
  return latest_ = number;
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace diwarp::llp
