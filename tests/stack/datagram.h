// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "stack/datagram_writing.h"

/// Datagrams of every kind, read from the layout in docs/wire-format.md without the library's own
/// code.
namespace diwarp::test {

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
  segment.opcode = (control & 15) == 0 ? kRdmaWrite : static_cast<uint8_t>(control & 15);
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
/// where it is too short for what it says, or its CRC is wrong; checks nothing else.
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

/// Of a datagram of class 1; `content` has all that follows the header's 24 bytes. Throws as
/// read_segment() does, which reads what data carry if it is told of these 24.
inline ReliableHeader read_reliable(std::span<const std::byte> datagram) {
  if (!has_right_crc(datagram)) throw std::runtime_error("the CRC is wrong");
  if (class_of(datagram) != 1) throw std::runtime_error("it is not a reliable datagram");
  const std::span<const std::byte> bytes = datagram.first(datagram.size() - 4);
  ReliableHeader header;
  header.kind = static_cast<uint8_t>(read_be(bytes, 8, 1));
  header.flags = static_cast<uint8_t>(read_be(bytes, 9, 1));
  header.window = static_cast<uint16_t>(read_be(bytes, 10, 2));
  header.epoch = read_be32(bytes, 12);
  header.peer_epoch = read_be32(bytes, 16);
  header.peer_incarnation = read_be32(bytes, 20);
  header.sequence = read_be32(bytes, 24);
  header.acknowledged = read_be32(bytes, 28);
  header.content.assign(bytes.begin() + 32, bytes.end());
  return header;
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

/// Of a Challenge or an Echo.
inline uint64_t nonce_of(const Control& control) { return read_be64(control.content, 0); }
inline std::vector<std::byte> cookie_of(const Control& control) {
  if (control.content.size() != 24) throw std::runtime_error("it is no Challenge and no Echo");
  return {control.content.begin() + 8, control.content.end()};
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
