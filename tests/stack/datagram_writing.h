// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Datagrams of every kind, written from the layout in docs/wire-format.md, RFC 5041
/// figures 3 and 5 and RFC 5040 section 4, without the library's own code. Datagrams that the
/// library must refuse can be written as well.
namespace diwarp::test {

inline constexpr size_t kOverhead = 30;  // of a Send: prefix 8, DDP and RDMAP header 18, CRC 4
inline constexpr size_t kRecordOverhead = 38;    // prefix 8, header 14, extension 12, CRC 4
inline constexpr size_t kResponseOverhead = 26;  // prefix 8, header 14, CRC 4
inline constexpr size_t kRequestBytes = 58;      // prefix 8, header 18, body 28, CRC 4

// Opcodes; 3 and 5 are chosen by `solicited`. An RDMA Write's is 0 on the wire.
inline constexpr uint8_t kRdmaWrite = 16;
inline constexpr uint8_t kReadRequest = 1;
inline constexpr uint8_t kReadResponse = 2;
inline constexpr uint8_t kSendInvalidate = 4;
inline constexpr uint8_t kSolicitedInvalidate = 6;
inline constexpr uint8_t kWriteRecord = 12;

// Types of control messages.
inline constexpr uint8_t kChallenge = 1;
inline constexpr uint8_t kEcho = 2;
inline constexpr uint8_t kError = 3;

/// CRC32C (Castagnoli, reflected polynomial 0x82F63B78), a byte at a time.
inline uint32_t castagnoli(std::span<const std::byte> bytes) {
  static const auto table = [] {
    std::array<uint32_t, 256> entries{};
    for (uint32_t value = 0; value < entries.size(); ++value) {
      uint32_t remainder = value;
      for (int bit = 0; bit < 8; ++bit)
        remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82F63B78U : 0U);
      entries[value] = remainder;
    }
    return entries;
  }();
  uint32_t crc = 0xFFFFFFFFU;
  for (std::byte byte : bytes)
    crc = (crc >> 8) ^ table[(crc ^ std::to_integer<uint32_t>(byte)) & 255];
  return ~crc;
}

inline void append(std::vector<std::byte>& to, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
    to.push_back(static_cast<std::byte>(value >> shift));
}

inline void append_crc(std::vector<std::byte>& out, uint32_t error = 0) {
  const uint32_t crc = castagnoli(out) ^ error;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(crc >> shift));
}

/// One segment. Its defaults are right; any field can be made wrong.
struct Segment {
  uint32_t incarnation = 1;
  uint32_t msn = 0;
  uint32_t offset = 0;  // MO
  bool last = true;
  bool solicited = false;
  uint32_t q_key = 0;  // with invalidate: the STag; of a Read Request: the nonce
  std::vector<std::byte> payload = {};

  uint8_t version = 2;
  uint8_t datagram_class = 0;
  uint8_t flags = 0;  // besides the solicited and the immediate one
  uint16_t reserved = 0;
  uint8_t ddp_reserved = 0;
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
  uint8_t opcode = 0;         // 0: the Send that fits
  uint32_t queue_number = 0;  // added to the opcode's own
  uint32_t crc_error = 0;     // xored

  uint32_t stag = 0;           // tagged
  uint64_t tagged_offset = 0;  // tagged: TO of this segment
  std::optional<uint32_t> message_length =
      {};  // Write-Record; by default it ends with this segment
  std::optional<uint64_t> immediate = {};
  uint32_t sink_stag = 0;  // Read Request: these five
  uint64_t sink_offset = 0;
  uint32_t read_length = 0;
  uint32_t source_stag = 0;
  uint64_t source_offset = 0;
  std::vector<std::byte> rd_header = {};  // class 1: the bytes behind the prefix
  bool wrong_form = false;                // the T bit and header that the opcode has not
};

inline uint8_t opcode_of(const Segment& segment) {
  return segment.opcode != 0 ? segment.opcode : segment.solicited ? 5 : 3;
}
inline bool is_tagged(const Segment& segment) {
  const uint8_t opcode = opcode_of(segment);
  const bool tagged = opcode == kRdmaWrite || opcode == kReadResponse || opcode == kWriteRecord;
  return tagged != segment.wrong_form;
}

/// The DDP header and what follows it up to the payload: what an Error quotes.
inline std::vector<std::byte> header_bytes(const Segment& segment) {
  std::vector<std::byte> out;
  const uint8_t opcode = opcode_of(segment);
  append(out,
         (is_tagged(segment) ? 0x80U : 0U) | (segment.last ? 0x40U : 0U) |
             uint64_t{segment.ddp_reserved} << 2 | segment.ddp_version,
         1);
  append(out, uint64_t{segment.rdmap_version} << 6 | (opcode & 15U), 1);
  if (is_tagged(segment)) {
    append(out, segment.stag, 4);
    append(out, segment.tagged_offset, 8);
  } else {
    append(out, segment.q_key, 4);
    append(out, segment.queue_number + (opcode == kReadRequest ? 1 : 0), 4);
    append(out, segment.msn, 4);
    append(out, segment.offset, 4);
  }
  if (opcode == kWriteRecord) {
    append(out, segment.msn, 4);
    append(out, segment.offset, 4);
    append(out,
           segment.message_length.value_or(segment.offset +
                                           static_cast<uint32_t>(segment.payload.size())),
           4);
  }
  if (opcode == kReadRequest) {
    append(out, segment.sink_stag, 4);
    append(out, segment.sink_offset, 8);
    append(out, segment.read_length, 4);
    append(out, segment.source_stag, 4);
    append(out, segment.source_offset, 8);
  }
  return out;
}

inline void append_prefix(std::vector<std::byte>& out, uint8_t version, uint8_t datagram_class,
                          uint8_t flags, uint16_t reserved, uint32_t incarnation) {
  append(out, uint64_t{version} << 4 | datagram_class, 1);
  append(out, flags, 1);
  append(out, reserved, 2);
  append(out, incarnation, 4);
}

inline std::vector<std::byte> to_bytes(const Segment& segment) {
  std::vector<std::byte> out;
  const unsigned flags =
      segment.flags | (segment.solicited ? 2U : 0U) | (segment.immediate.has_value() ? 1U : 0U);
  append_prefix(out, segment.version, segment.datagram_class, static_cast<uint8_t>(flags),
                segment.reserved, segment.incarnation);
  out.insert(out.end(), segment.rd_header.begin(), segment.rd_header.end());
  if (segment.immediate) append(out, *segment.immediate, 8);
  const std::vector<std::byte> headers = header_bytes(segment);
  out.insert(out.end(), headers.begin(), headers.end());
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  append_crc(out, segment.crc_error);
  return out;
}

// Kinds of reliable datagrams.
inline constexpr uint8_t kRdData = 1;
inline constexpr uint8_t kRdSkip = 2;
inline constexpr uint8_t kRdFailure = 3;
inline constexpr uint8_t kRdAcknowledgement = 4;
inline constexpr uint8_t kRdProbe = 5;
inline constexpr uint8_t kRdRefusal = 6;
inline constexpr uint8_t kRdOpen = 7;
inline constexpr uint8_t kRdReset = 8;

/// The header of a reliable datagram (class 1), and what follows it where that is no segment.
struct ReliableHeader {
  uint8_t kind = kRdData;
  uint8_t flags = 0;
  uint16_t window = 0;
  uint32_t epoch = 0;
  uint32_t peer_epoch = 0;
  uint32_t peer_incarnation = 0;
  uint32_t sequence = 0;
  uint32_t acknowledged = 0;
  std::vector<std::byte> content = {};
};

inline std::vector<std::byte> to_bytes(const ReliableHeader& header) {
  std::vector<std::byte> out;
  append(out, header.kind, 1);
  append(out, header.flags, 1);
  append(out, header.window, 2);
  append(out, header.epoch, 4);
  append(out, header.peer_epoch, 4);
  append(out, header.peer_incarnation, 4);
  append(out, header.sequence, 4);
  append(out, header.acknowledged, 4);
  out.insert(out.end(), header.content.begin(), header.content.end());
  return out;
}

// Kinds of messages, as a skip names them.
inline constexpr uint8_t kRdSend = 1;
inline constexpr uint8_t kRdWriteRecord = 2;
inline constexpr uint8_t kRdReadRequest = 3;
inline constexpr uint8_t kRdReadResponse = 4;

/// What a skip says: the kind of the message that was given up, and its MSN or sink STag.
inline std::vector<std::byte> skip_content(uint8_t kind, uint32_t number) {
  std::vector<std::byte> out;
  append(out, kind, 1);
  append(out, 0, 3);
  append(out, number, 4);
  return out;
}

/// A reliable datagram without a segment. One with a segment is that Segment, of class 1 and with
/// the bytes of a ReliableHeader as its `rd_header`.
inline std::vector<std::byte> to_bytes(uint32_t incarnation, const ReliableHeader& header) {
  std::vector<std::byte> out;
  append_prefix(out, 2, 1, 0, 0, incarnation);
  const std::vector<std::byte> bytes = to_bytes(header);
  out.insert(out.end(), bytes.begin(), bytes.end());
  append_crc(out);
  return out;
}

/// A control message. A challenge and an echo have 24 bytes of `content`: challenge_content().
struct Control {
  uint32_t incarnation = 1;
  uint8_t type = kEcho;
  std::vector<std::byte> content = {};
  uint8_t version = 2;
  uint8_t flags = 0;
  uint16_t prefix_reserved = 0;
  uint32_t reserved = 0;  // 24 bits
  uint32_t crc_error = 0;
};

inline std::vector<std::byte> to_bytes(const Control& control) {
  std::vector<std::byte> out;
  append_prefix(out, control.version, 2, control.flags, control.prefix_reserved,
                control.incarnation);
  append(out, control.type, 1);
  append(out, control.reserved, 3);
  out.insert(out.end(), control.content.begin(), control.content.end());
  append_crc(out, control.crc_error);
  return out;
}

/// What a Challenge and its Echo say: a nonce, and a cookie of 16 bytes.
inline std::vector<std::byte> challenge_content(uint64_t nonce,
                                                const std::vector<std::byte>& cookie) {
  std::vector<std::byte> out;
  append(out, nonce, 8);
  out.insert(out.end(), cookie.begin(), cookie.end());
  return out;
}

/// What an Error says (RFC 5040 section 4.8). `headers` is empty, a DDP header, or all of a
/// segment's.
struct ErrorContent {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  std::vector<std::byte> headers = {};
  uint16_t segment_bytes = 0;  // headers and payload
};

inline std::vector<std::byte> to_bytes(const ErrorContent& error) {
  const auto has_tag = [&] { return (std::to_integer<unsigned>(error.headers[0]) & 0x80U) != 0; };
  std::vector<std::byte> out;
  append(out, uint64_t{error.layer} << 4 | error.type, 1);
  append(out, error.code, 1);
  if (error.headers.empty()) {
    append(out, 0, 2);
    return out;
  }
  append(out, error.headers.size() > (has_tag() ? 14U : 18U) ? 0xE000 : 0xC000, 2);
  append(out, error.segment_bytes, 2);
  out.insert(out.end(), error.headers.begin(), error.headers.end());
  return out;
}

/// The Error about a segment, with all of its headers.
inline Control error_about(const Segment& segment, uint8_t layer, uint8_t type, uint8_t code) {
  const std::vector<std::byte> headers = header_bytes(segment);
  return {.type = kError,
          .content = to_bytes(ErrorContent{
              .layer = layer,
              .type = type,
              .code = code,
              .headers = headers,
              .segment_bytes = static_cast<uint16_t>(headers.size() + segment.payload.size())})};
}

}  // namespace diwarp::test
