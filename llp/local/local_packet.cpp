// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_packet.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace diwarp::llp {
namespace {

/// An address in a form of which any content can be read.
struct PackedAddress {
  uint16_t family;  // AF_INET or AF_INET6
  uint16_t port;
  uint32_t scope;
  std::array<uint8_t, 16> bytes;
};

/// The processor's byte order: both ends are on one host.
struct PackedPacket {
  uint8_t kind;
  uint8_t refusal;
  uint8_t ring_kind;
  uint8_t crc;  // 0 or 1
  uint32_t number;
  uint64_t bytes;
  PackedAddress from;
  PackedAddress to;
};
static_assert(sizeof(PackedAddress) == 24);
static_assert(sizeof(PackedPacket) == kLocalPacketBytes);

PackedAddress pack(const Address& address) {
  PackedAddress packed{};
  packed.family = address.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  packed.port = address.port();
  packed.scope = address.scope_id();
  std::copy(address.bytes().begin(), address.bytes().end(), packed.bytes.begin());
  return packed;
}

std::optional<Address> unpack(const PackedAddress& packed) {
  if (packed.family == AF_INET) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(packed.port);
    std::memcpy(&v4.sin_addr, packed.bytes.data(), sizeof v4.sin_addr);
    return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&v4));
  }
  if (packed.family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(packed.port);
  v6.sin6_scope_id = packed.scope;
  std::memcpy(&v6.sin6_addr, packed.bytes.data(), sizeof v6.sin6_addr);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&v6));
}

}  // namespace

std::string_view explain(RingRefusal why) {
  switch (why) {
    case RingRefusal::none:
      break;
    case RingRefusal::no_queue_pair:
      return "no device of this host and user has it";
    case RingRefusal::not_yours:
      return "the source's socket is not known to be this user's";
    case RingRefusal::too_many:
      return "there are as many rings as a device may have";
    case RingRefusal::memory:
      return "there is no memory to share, or no descriptor for it";
  }
  return "no answer came in time";
}

EncodedLocalPacket encode(const LocalPacket& packet) {
  PackedPacket packed{};
  packed.kind = static_cast<uint8_t>(packet.kind);
  packed.refusal = static_cast<uint8_t>(packet.refusal);
  packed.number = packet.number;
  packed.bytes = packet.bytes;
  packed.crc = packet.crc ? 1 : 0;
  packed.ring_kind = static_cast<uint8_t>(packet.route.kind);
  packed.from = pack(packet.route.from);
  packed.to = pack(packet.route.to);
  EncodedLocalPacket bytes;
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

std::optional<LocalPacket> decode_local_packet(ConstBytes bytes) {
  PackedPacket packed;
  if (bytes.size() != sizeof packed) return std::nullopt;
  std::memcpy(&packed, bytes.data(), sizeof packed);
  if (packed.kind > static_cast<uint8_t>(LocalPacket::Kind::room)) return std::nullopt;
  if (packed.refusal > static_cast<uint8_t>(RingRefusal::memory)) return std::nullopt;
  if (packed.ring_kind > static_cast<uint8_t>(RingKind::stream)) return std::nullopt;
  if (packed.crc > 1) return std::nullopt;
  const auto from = unpack(packed.from);
  const auto to = unpack(packed.to);
  if (!from || !to) return std::nullopt;
  return LocalPacket{
      .kind = static_cast<LocalPacket::Kind>(packed.kind),
      .refusal = static_cast<RingRefusal>(packed.refusal),
      .number = packed.number,
      .bytes = packed.bytes,
      .crc = packed.crc != 0,
      .route = {.kind = static_cast<RingKind>(packed.ring_kind), .from = *from, .to = *to}};
}

}  // namespace diwarp::llp
