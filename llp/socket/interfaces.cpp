// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>
#include <string>

#include "diwarp/error.h"

namespace diwarp::llp {
namespace {

/// One address of an interface.
struct Entry {
  const char* name;
  Address address;
  uint32_t mask;  // IPv4, host order
};

/// An IPv4 address as a number.
uint32_t number_of(const Address& address) {
  uint32_t word = 0;
  std::memcpy(&word, address.bytes().data(), sizeof word);
  return ntohl(word);
}

uint32_t mask_of(const ifaddrs& entry) {
  if (entry.ifa_netmask == nullptr || entry.ifa_addr->sa_family != AF_INET) return ~uint32_t{0};
  sockaddr_in mask;
  std::memcpy(&mask, entry.ifa_netmask, sizeof mask);
  return ntohl(mask.sin_addr.s_addr);
}

/// The index of the first interface with an address that `match` accepts; 0 where none has.
template <class Match>
uint32_t find_interface(Match match) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return 0;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const sockaddr* address = entry->ifa_addr;
    if (address == nullptr) continue;
    if (address->sa_family != AF_INET && address->sa_family != AF_INET6) continue;
    if (match(Entry{entry->ifa_name, Address::from_sockaddr(address), mask_of(*entry)}))
      return ::if_nametoindex(entry->ifa_name);
  }
  return 0;
}

bool same_host(const Address& a, const Address& b) {
  const auto one = a.bytes();
  const auto other = b.bytes();
  return a.family() == b.family() && std::memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace

uint32_t interface_named(std::string_view name) {
  const uint32_t index = ::if_nametoindex(std::string(name).c_str());
  if (index == 0) {
    throw Error(Errc::invalid_argument,
                "There is no interface \"" + std::string(name) + "\": see the list of `ip link`");
  }
  return index;
}

uint32_t interface_of(const Address& local) {
  if (local.is_any()) return 0;
  if (local.scope_id() != 0) return local.scope_id();
  const uint32_t exact =
      find_interface([&](const Entry& entry) { return same_host(entry.address, local); });
  if (exact != 0 || local.family() != AddressFamily::ipv4) return exact;
  return find_interface([&](const Entry& entry) {
    return entry.address.family() == AddressFamily::ipv4 &&
           ((number_of(entry.address) ^ number_of(local)) & entry.mask) == 0;
  });
}

uint32_t interface_of_broadcast(const Address& broadcast) {
  if (broadcast.family() != AddressFamily::ipv4) return 0;
  constexpr uint32_t kSmallest = ~uint32_t{3};  // smaller subnets have none (RFC 3021)
  return find_interface([&](const Entry& entry) {
    return entry.address.family() == AddressFamily::ipv4 && entry.mask <= kSmallest &&
           (number_of(entry.address) | ~entry.mask) == number_of(broadcast);
  });
}

}  // namespace diwarp::llp
