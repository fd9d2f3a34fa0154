// SPDX-License-Identifier: Apache-2.0
#include "llp/capture/packet.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "base/byte_order.h"

namespace diwarp::llp {
namespace {

constexpr size_t kUdpHeader = 8;
constexpr size_t kTcpHeader = 20;
constexpr uint8_t kHopLimit = 64;

/// The Internet checksum of all that is added (RFC 1071). An odd number of bytes ends it.
class Checksum {
 public:
  void add(uint16_t word) { sum_ += word; }
  void add(ConstBytes bytes) {
    for (const std::byte byte : bytes) {
      sum_ += odd_ ? std::to_integer<uint64_t>(byte) : std::to_integer<uint64_t>(byte) << 8;
      odd_ = !odd_;
    }
  }
  uint16_t value() const {
    uint64_t folded = sum_;
    while (folded > 0xFFFF) folded = (folded & 0xFFFF) + (folded >> 16);
    return static_cast<uint16_t>(~folded);
  }

 private:
  uint64_t sum_ = 0;
  bool odd_ = false;
};

ConstBytes bytes_of(const Address& address) { return std::as_bytes(address.bytes()); }

void put(Bytes target, size_t at, ConstBytes bytes) {
  std::ranges::copy(bytes, target.begin() + static_cast<std::ptrdiff_t>(at));
}

void put16(Bytes target, size_t at, uint16_t value) { store_be(target.data() + at, value); }
void put32(Bytes target, size_t at, uint32_t value) { store_be(target.data() + at, value); }

void compose_ipv4(Bytes target, const Packet& packet, uint8_t protocol) {
  std::ranges::fill(target.first(20), std::byte{0});
  target[0] = std::byte{0x45};  // version 4, a header of five words
  put16(target, 2, static_cast<uint16_t>(packet.size()));
  put16(target, 6, 0x4000);  // it may not be fragmented
  target[8] = std::byte{kHopLimit};
  target[9] = std::byte{protocol};
  put(target, 12, bytes_of(packet.from));
  put(target, 16, bytes_of(packet.to));
  Checksum sum;
  sum.add(ConstBytes(target.first(20)));
  put16(target, 10, sum.value());
}

void compose_ipv6(Bytes target, const Packet& packet, uint8_t protocol) {
  std::ranges::fill(target.first(8), std::byte{0});
  target[0] = std::byte{0x60};
  put16(target, 4, static_cast<uint16_t>(packet.size() - 40));
  target[6] = std::byte{protocol};
  target[7] = std::byte{kHopLimit};
  put(target, 8, bytes_of(packet.from));
  put(target, 24, bytes_of(packet.to));
}

void compose_udp(Bytes target, const Packet& packet) {
  put16(target, 0, packet.from.port());
  put16(target, 2, packet.to.port());
  put16(target, 4, static_cast<uint16_t>(kUdpHeader + packet.payload()));
  put16(target, 6, 0);
}

void compose_tcp(Bytes target, const Packet& packet) {
  std::ranges::fill(target.first(kTcpHeader), std::byte{0});
  put16(target, 0, packet.from.port());
  put16(target, 2, packet.to.port());
  put32(target, 4, packet.tcp->sequence);
  put32(target, 8, packet.tcp->acknowledgement);
  target[12] = std::byte{kTcpHeader / 4 << 4};
  target[13] = std::byte{packet.tcp->flags};
  put16(target, 14, 0xFFFF);  // the window
}

/// Of a UDP or TCP header with its payload, and the pseudo-header before it.
uint16_t transport_checksum(const Packet& packet, uint8_t protocol, ConstBytes transport) {
  Checksum sum;
  sum.add(bytes_of(packet.from));
  sum.add(bytes_of(packet.to));
  sum.add(static_cast<uint16_t>(protocol));
  sum.add(static_cast<uint16_t>(transport.size()));
  sum.add(transport);
  const uint16_t value = sum.value();
  return value == 0 && protocol == IPPROTO_UDP ? uint16_t{0xFFFF} : value;  // 0: UDP has none
}

size_t ip_header(const Packet& packet) {
  return packet.to.family() == AddressFamily::ipv4 ? 20 : 40;
}

}  // namespace

size_t Packet::payload() const {
  size_t total = 0;
  for (const ConstBytes piece : pieces) total += piece.size();
  return total;
}

size_t Packet::size() const {
  return ip_header(*this) + (tcp != nullptr ? kTcpHeader : kUdpHeader) + payload();
}

void Packet::compose(Bytes target) const {
  const bool ipv4 = to.family() == AddressFamily::ipv4;
  const uint8_t protocol = tcp != nullptr ? IPPROTO_TCP : IPPROTO_UDP;
  const Bytes transport = target.subspan(ip_header(*this), size() - ip_header(*this));
  (ipv4 ? compose_ipv4 : compose_ipv6)(target, *this, protocol);
  (tcp != nullptr ? compose_tcp : compose_udp)(transport, *this);
  size_t at = tcp != nullptr ? kTcpHeader : kUdpHeader;
  for (const ConstBytes piece : pieces) {
    put(transport, at, piece);
    at += piece.size();
  }
  put16(transport, tcp != nullptr ? 16 : 6, transport_checksum(*this, protocol, transport));
}

}  // namespace diwarp::llp
