// SPDX-License-Identifier: Apache-2.0
#include "switch/frame.h"

#include <algorithm>

namespace network {

namespace {

constexpr size_t kIpv6Bytes = 40;
constexpr size_t kUdpBytes = 8;
constexpr uint8_t kIpv6Fragment = 44;

using View = std::span<const uint8_t>;

uint16_t word(View bytes, size_t at) {
  return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]);
}

Mac mac_at(const Frame& frame, size_t at) {
  Mac mac{};
  if (frame.size() >= at + mac.size()) {
    std::copy_n(frame.begin() + static_cast<ptrdiff_t>(at), mac.size(), mac.begin());
  }
  return mac;
}

void set_payload(Packet& packet, View transport) {
  if (packet.protocol == kUdp && !packet.fragment && transport.size() >= kUdpBytes) {
    packet.payload = transport.subspan(kUdpBytes);
  }
}

Packet ipv4_packet(View ip) {
  const size_t header = ip.size() < 20 ? 0 : size_t{ip[0]} % 16 * 4;
  if (header < 20 || ip.size() < header) return {};
  Packet packet{.protocol = ip[9], .fragment = (word(ip, 6) & 0x1fff) != 0, .payload = {}};
  set_payload(packet,
              ip.subspan(header, std::clamp<size_t>(word(ip, 2), header, ip.size()) - header));
  return packet;
}

Packet ipv6_packet(View ip) {
  if (ip.size() < kIpv6Bytes) return {};
  Packet packet{.protocol = ip[6], .fragment = false, .payload = {}};
  View rest = ip.subspan(kIpv6Bytes, std::min<size_t>(word(ip, 4), ip.size() - kIpv6Bytes));
  if (packet.protocol == kIpv6Fragment && rest.size() >= 8) {
    packet.protocol = rest[0];
    packet.fragment = (word(rest, 2) & 0xfff8) != 0;
    rest = rest.subspan(8);
  }
  set_payload(packet, rest);
  return packet;
}

}  // namespace

Mac destination_of(const Frame& frame) { return mac_at(frame, 0); }

Mac source_of(const Frame& frame) { return mac_at(frame, 6); }

bool for_group(const Frame& frame) { return !frame.empty() && (frame[0] & 1) != 0; }

Packet packet_of(const Frame& frame) {
  if (frame.size() < kEthernetBytes) return {};
  const View bytes(frame);
  switch (word(bytes, 12)) {
    case 0x0800:
      return ipv4_packet(bytes.subspan(kEthernetBytes));
    case 0x86dd:
      return ipv6_packet(bytes.subspan(kEthernetBytes));
    default:
      return {};
  }
}

}  // namespace network
