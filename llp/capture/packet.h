// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "diwarp/address.h"

/// IP packets as they might have carried what a link or a stream moved: the kernel made the real
/// ones, and may have cut the same bytes in other places.
namespace diwarp::llp {

/// The most payload of one packet, in bytes: of IPv4, which has less than IPv6.
inline constexpr size_t kMostUdpPayload = 65535 - 20 - 8;
inline constexpr size_t kMostTcpPayload = 65535 - 20 - 20;

/// TCP's flags (RFC 9293 section 3.1).
inline constexpr uint8_t kTcpFin = 0x01;
inline constexpr uint8_t kTcpSyn = 0x02;
inline constexpr uint8_t kTcpRst = 0x04;
inline constexpr uint8_t kTcpPsh = 0x08;
inline constexpr uint8_t kTcpAck = 0x10;

/// What the headers of a TCP segment say besides its ports.
struct TcpFields {
  uint32_t sequence = 0;
  uint32_t acknowledgement = 0;
  uint8_t flags = 0;
};

/// One packet: of TCP where `tcp` is not null, else of UDP. Both addresses are of one family. The
/// pieces make up its payload, no more than kMostUdpPayload or kMostTcpPayload in all.
struct Packet {
  Address from;
  Address to;
  const TcpFields* tcp = nullptr;
  std::span<const ConstBytes> pieces = {};

  size_t payload() const;
  /// With its headers, in bytes.
  size_t size() const;
  /// Fills the first size() bytes of `target`.
  void compose(Bytes target) const;
};

}  // namespace diwarp::llp
