// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

/// Datagrams of every kind, written and read from the layout in docs/wire-format.md, RFC 5041
/// figures 3 and 5 and RFC 5040 section 4, without the library's own code. What the library must
/// refuse can be written as well.
namespace diwarp::test {

inline constexpr size_t kOverhead = 30;  // of a Send: prefix 8, DDP and RDMAP header 18, CRC 4
inline constexpr size_t kRecordOverhead = 38;    // prefix 8, header 14, extension 12, CRC 4
inline constexpr size_t kResponseOverhead = 26;  // prefix 8, header 14, CRC 4
inline constexpr size_t kRequestBytes = 58;      // prefix 8, header 18, body 28, CRC 4

// Opcodes; 3 and 5 are chosen by `solicited`.
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
  uint32_t q_key = 0;  // with invalidate: the STag
  std::vector<std::byte> payload = {};

  uint8_t version = 1;
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
  std::vector<std::byte> rd_header = {};  // class 1: what stands behind the prefix
  bool wrong_form = false;                // the T bit and header that the opcode has not
};

inline uint8_t opcode_of(const Segment& segment) {
  return segment.opcode != 0 ? segment.opcode : segment.solicited ? 5 : 3;
}
inline bool is_tagged(const Segment& segment) {
  const uint8_t opcode = opcode_of(segment);
  return (opcode == 0 || opcode == kReadResponse || opcode == kWriteRecord) != segment.wrong_form;
}

/// The DDP header and what follows it up to the payload: what an Error quotes.
inline std::vector<std::byte> header_bytes(const Segment& segment) {
  std::vector<std::byte> out;
  const uint8_t opcode = opcode_of(segment);
  append(out,
         (is_tagged(segment) ? 0x80U : 0U) | (segment.last ? 0x40U : 0U) |
             uint64_t{segment.ddp_reserved} << 2 | segment.ddp_version,
         1);
  append(out, uint64_t{segment.rdmap_version} << 6 | opcode, 1);
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

/// A control message. A challenge and an echo have 16 bytes of `content`, a cookie.
struct Control {
  uint32_t incarnation = 1;
  uint8_t type = kEcho;
  std::vector<std::byte> content = {};
  uint8_t version = 1;
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

// --- What a datagram on the wire says.

inline uint64_t read_be(std::span<const std::byte> bytes, size_t at, size_t count) {
  if (at + count > bytes.size()) throw std::out_of_range("the datagram is too short");
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return value;
}
inline uint32_t read_be32(std::span<const std::byte> bytes, size_t at) {
  return static_cast<uint32_t>(read_be(bytes, at, 4));
}
inline uint64_t read_be64(std::span<const std::byte> bytes, size_t at) {
  return read_be(bytes, at, 8);
}

inline unsigned class_of(std::span<const std::byte> datagram) {
  return static_cast<unsigned>(read_be(datagram, 0, 1)) & 15U;
}
inline bool is_control(std::span<const std::byte> datagram) { return class_of(datagram) == 2; }
inline bool has_right_crc(std::span<const std::byte> datagram) {
  if (datagram.size() < 4) return false;
  std::vector<std::byte> again(datagram.begin(), datagram.end() - 4);
  append_crc(again);
  return std::equal(again.begin(), again.end(), datagram.begin(), datagram.end());
}

/// Of a Send of class 0 without immediate data.
inline bool last_of(std::span<const std::byte> datagram) {
  return (std::to_integer<unsigned>(datagram[8]) & 0x40U) != 0;
}
inline uint32_t msn_of(std::span<const std::byte> datagram) { return read_be32(datagram, 18); }
inline uint32_t offset_of(std::span<const std::byte> datagram) { return read_be32(datagram, 22); }
inline size_t payload_of(std::span<const std::byte> datagram) {
  return datagram.size() - kOverhead;
}

inline Segment read_prefix(std::span<const std::byte> bytes) {
  Segment segment;
  segment.version = static_cast<uint8_t>(read_be(bytes, 0, 1) >> 4);
  segment.datagram_class = static_cast<uint8_t>(class_of(bytes));
  segment.solicited = (read_be(bytes, 1, 1) & 2) != 0;
  segment.flags = static_cast<uint8_t>(read_be(bytes, 1, 1) & 0xFC);
  segment.reserved = static_cast<uint16_t>(read_be(bytes, 2, 2));
  segment.incarnation = read_be32(bytes, 4);
  return segment;
}

/// Reads the DDP header at `at`; returns where it ends.
inline size_t read_ddp_header(std::span<const std::byte> bytes, size_t at, Segment& segment) {
  const uint64_t control = read_be(bytes, at, 2);
  segment.last = (control & 0x4000) != 0;
  segment.ddp_reserved = static_cast<uint8_t>(control >> 10 & 15);
  segment.ddp_version = static_cast<uint8_t>(control >> 8 & 3);
  segment.rdmap_version = static_cast<uint8_t>(control >> 6 & 3);
  segment.opcode = static_cast<uint8_t>(control & 15);
  const bool tagged = (control & 0x8000) != 0;
  segment.wrong_form = is_tagged(segment) != tagged;
  if (tagged) {
    segment.stag = read_be32(bytes, at + 2);
    segment.tagged_offset = read_be64(bytes, at + 6);
    return at + 14;
  }
  segment.q_key = read_be32(bytes, at + 2);
  segment.queue_number = read_be32(bytes, at + 6) - (segment.opcode == kReadRequest ? 1 : 0);
  segment.msn = read_be32(bytes, at + 10);
  segment.offset = read_be32(bytes, at + 14);
  return at + 18;
}

/// Reads what stands between DDP header and payload; returns where it ends.
inline size_t read_extension(std::span<const std::byte> bytes, size_t at, Segment& segment) {
  if (segment.opcode == kWriteRecord) {
    segment.msn = read_be32(bytes, at);
    segment.offset = read_be32(bytes, at + 4);
    segment.message_length = read_be32(bytes, at + 8);
    return at + 12;
  }
  if (segment.opcode != kReadRequest) return at;
  segment.sink_stag = read_be32(bytes, at);
  segment.sink_offset = read_be64(bytes, at + 4);
  segment.read_length = read_be32(bytes, at + 12);
  segment.source_stag = read_be32(bytes, at + 16);
  segment.source_offset = read_be64(bytes, at + 20);
  return at + 28;
}

/// Reads a segment of class 0, or of class 1 with `rd_bytes` of header behind the prefix. Throws
/// where it is too short for what it says, or its CRC is wrong; judges nothing else.
inline Segment read_segment(std::span<const std::byte> datagram, size_t rd_bytes = 0) {
  if (!has_right_crc(datagram)) throw std::runtime_error("the CRC is wrong");
  const std::span<const std::byte> bytes = datagram.first(datagram.size() - 4);
  Segment segment = read_prefix(bytes);
  size_t at = 8 + rd_bytes;
  segment.rd_header.assign(bytes.begin() + 8, bytes.begin() + static_cast<std::ptrdiff_t>(at));
  if ((read_be(bytes, 1, 1) & 1) != 0) {
    segment.immediate = read_be64(bytes, at);
    at += 8;
  }
  at = read_ddp_header(bytes, at, segment);
  at = read_extension(bytes, at, segment);
  segment.payload.assign(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
  return segment;
}

inline Control read_control(std::span<const std::byte> datagram) {
  if (!has_right_crc(datagram)) throw std::runtime_error("the CRC is wrong");
  if (!is_control(datagram)) throw std::runtime_error("it is not a control message");
  const std::span<const std::byte> bytes = datagram.first(datagram.size() - 4);
  Control control;
  control.version = static_cast<uint8_t>(read_be(bytes, 0, 1) >> 4);
  control.flags = static_cast<uint8_t>(read_be(bytes, 1, 1));
  control.prefix_reserved = static_cast<uint16_t>(read_be(bytes, 2, 2));
  control.incarnation = read_be32(bytes, 4);
  control.type = static_cast<uint8_t>(read_be(bytes, 8, 1));
  control.reserved = static_cast<uint32_t>(read_be(bytes, 9, 3));
  control.content.assign(bytes.begin() + 12, bytes.end());
  return control;
}

inline ErrorContent read_error(const Control& control) {
  const std::span<const std::byte> bytes = control.content;
  ErrorContent error;
  error.layer = static_cast<uint8_t>(read_be(bytes, 0, 1) >> 4);
  error.type = static_cast<uint8_t>(read_be(bytes, 0, 1) & 15);
  error.code = static_cast<uint8_t>(read_be(bytes, 1, 1));
  if (bytes.size() == 4) return error;
  error.segment_bytes = static_cast<uint16_t>(read_be(bytes, 4, 2));
  error.headers.assign(bytes.begin() + 6, bytes.end());
  return error;
}

}  // namespace diwarp::test
