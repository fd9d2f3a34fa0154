// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/route_header.h"

#include <algorithm>
#include <span>

#include "base/mapped_address.h"

namespace diwarp::rnic {

namespace {

constexpr std::byte kVersion{0x60};     // 6; traffic class and flow label are 0
constexpr std::byte kNextHeader{0x1B};  // InfiniBand's transport
constexpr std::byte kHopLimit{0xFF};
constexpr size_t kAddressBytes = 16;

/// The address as IPv6 has it.
void encode_address(const Address& address, std::span<std::byte, kAddressBytes> out) {
  const auto bytes = std::as_bytes(address.bytes());
  std::ranges::copy(std::as_bytes(std::span(kMappedPrefix)), out.begin());
  std::ranges::copy(bytes, out.last(bytes.size()).begin());
}

}  // namespace

std::array<std::byte, kRouteHeaderBytes> encode_route_header(const Address& source,
                                                             const Address& destination,
                                                             uint64_t payload) {
  const uint64_t length = payload <= UINT16_MAX ? payload : 0;
  std::array<std::byte, kRouteHeaderBytes> header{};
  header[0] = kVersion;
  header[4] = static_cast<std::byte>(length >> 8);
  header[5] = static_cast<std::byte>(length);
  header[6] = kNextHeader;
  header[7] = kHopLimit;
  const std::span all(header);
  encode_address(source, all.subspan<8, kAddressBytes>());
  encode_address(destination, all.subspan<24, kAddressBytes>());
  return header;
}

uint64_t RouteHeaders::write(const ddp::PlacementTarget& receive, const Address& source,
                             uint32_t group, uint32_t local, uint64_t payload) const {
  receive.place(0, encode_route_header(source, destination_(group, local), payload));
  return kRouteHeaderBytes;
}

}  // namespace diwarp::rnic
