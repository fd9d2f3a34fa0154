// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_address.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <span>

namespace diwarp {

namespace {

Address with_ipv4(std::span<const uint8_t> host, uint16_t port) {
  sockaddr_in filled{};
  filled.sin_family = AF_INET;
  filled.sin_port = htons(port);
  std::memcpy(&filled.sin_addr, host.data(), sizeof filled.sin_addr);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&filled));
}

}  // namespace

Address unmapped(const Address& address) {
  if (address.family() == AddressFamily::ipv4) return address;
  const std::span<const uint8_t> host = address.bytes();
  if (!std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), host.begin())) return address;
  return with_ipv4(host.subspan(kMappedPrefix.size()), address.port());
}

}  // namespace diwarp
