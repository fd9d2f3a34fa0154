// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/counters.h"
#include "ddp/header.h"
#include "rdmap/opcodes.h"

/// The datagram wire format, version 1 (docs/wire-format.md): one DDP segment per UDP datagram.
///
///   prefix (8) | DDP and RDMAP header (18) | payload | CRC32C (4)
namespace diwarp::rdmap {

inline constexpr size_t kPrefixBytes = 8;
inline constexpr size_t kDatagramCrcBytes = 4;
inline constexpr uint8_t kDatagramVersion = 1;

enum class DatagramClass : uint8_t { unreliable = 0 };

/// Bytes that a Send segment adds to its payload.
inline constexpr size_t kSendOverhead =
    kPrefixBytes + ddp::kUntaggedHeaderBytes + kDatagramCrcBytes;

/// One segment of a Send over datagrams, in host order.
struct SendSegment {
  uint32_t incarnation = 0;
  bool solicited = false;
  bool last = false;
  uint32_t q_key = 0;
  uint32_t msn = 0;
  uint32_t message_offset = 0;
  ConstBytes payload = {};
};

/// Writes prefix and headers (kSendOverhead - 4 bytes) to the front of `out`, without the payload;
/// returns bytes written.
size_t encode_send_headers(const SendSegment& segment, Bytes out);

/// The CRC trailer for bytes whose CRC32C is `crc`: stored as MPA stores it (RFC 5044 section 4.4).
void encode_datagram_crc(uint32_t crc, Bytes out);

/// Either a segment or the reason why the datagram is dropped.
struct ParsedDatagram {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;  ///< when not valid
  SendSegment segment = {};                       ///< when valid; payload points into the datagram
};

/// Judges a datagram in full, CRC included, in this order: length, version, class, flags, reserved
/// bits, CRC, DDP version and reserved bits, RDMAP version, opcode, tagged bit, queue number, the
/// solicited flag against the opcode, MO + payload within kMaxMessage.
ParsedDatagram parse_datagram(ConstBytes datagram);

}  // namespace diwarp::rdmap
