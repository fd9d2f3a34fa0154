// SPDX-License-Identifier: Apache-2.0
#include "compat/common/addresses.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "compat/common/error.h"
#include "compat/common/settings.h"

namespace diwarp::compat {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const in6_addr& address) {
  return std::memcmp(address.s6_addr, kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

Address unmapped(const sockaddr_in6& source) {
  sockaddr_in inner{};
  inner.sin_family = AF_INET;
  inner.sin_port = source.sin6_port;
  std::memcpy(&inner.sin_addr, source.sin6_addr.s6_addr + kMappedPrefix.size(),
              sizeof inner.sin_addr);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&inner));
}

bool is_last(const Address& address) { return address.is_loopback() || is_link_local(address); }

}  // namespace

socklen_t length_of(const sockaddr* address) {
  if (address == nullptr) return 0;
  if (address->sa_family == AF_INET) return sizeof(sockaddr_in);
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : 0;
}

Address address_of(const sockaddr* source) {
  refuse_if(length_of(source) == 0, EAFNOSUPPORT);
  if (source->sa_family == AF_INET6) {
    sockaddr_in6 copy{};
    std::memcpy(&copy, source, sizeof copy);
    if (is_mapped(copy.sin6_addr)) return unmapped(copy);
  }
  return Address::from_sockaddr(source);
}

void write_sockaddr(const Address& address, sockaddr_storage& target) {
  target = {};
  address.to_sockaddr(target);
}

std::vector<Address> host_addresses() {
  ifaddrs* first = nullptr;
  refuse_by_errno_if(::getifaddrs(&first) != 0);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<Address> found;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next)
    if ((one->ifa_flags & IFF_UP) != 0 && length_of(one->ifa_addr) != 0)
      found.push_back(Address::from_sockaddr(one->ifa_addr).with_port(0));
  std::stable_sort(found.begin(), found.end(),
                   [](const Address& a, const Address& b) { return a.family() < b.family(); });
  return found;
}

bool is_of_this_host(const Address& address) {
  if (address.is_loopback()) return true;
  const std::vector<Address> own = host_addresses();
  return std::any_of(own.begin(), own.end(), [&](const Address& one) {
    const bool same_scope = address.scope_id() == 0 || one.scope_id() == address.scope_id();
    return same_scope && std::ranges::equal(one.bytes(), address.bytes());
  });
}

bool wants_crc(const Address& peer) { return settings().crc || !is_of_this_host(peer); }

bool is_link_local(const Address& address) {
  const auto bytes = address.bytes();
  return address.family() == AddressFamily::ipv6 && bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
}

bool is_unspecific(const Address& address) { return address.is_any() || address.is_loopback(); }

std::array<uint8_t, 16> gid_bytes(const Address& address) {
  std::array<uint8_t, 16> gid{};
  const auto bytes = address.bytes();
  if (address.family() == AddressFamily::ipv4)
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), gid.begin());
  std::copy(bytes.begin(), bytes.end(), gid.end() - static_cast<ptrdiff_t>(bytes.size()));
  return gid;
}

Address address_of_gid(std::span<const uint8_t, 16> gid) {
  sockaddr_in6 inner{};
  inner.sin6_family = AF_INET6;
  std::memcpy(inner.sin6_addr.s6_addr, gid.data(), gid.size());
  return address_of(reinterpret_cast<const sockaddr*>(&inner));
}

std::vector<Address> gid_order(std::span<const Address> addresses) {
  std::vector<Address> ordered(addresses.begin(), addresses.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Address& one) { return !is_last(one); });
  return ordered;
}

}  // namespace diwarp::compat
