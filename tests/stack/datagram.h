// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Datagrams of a Send, written and read from the layout in docs/wire-format.md and RFC 5041 figure
/// 5, without the library's own code. What the library must refuse can be written as well.
namespace diwarp::test {

inline constexpr size_t kOverhead = 30;  // prefix 8, DDP and RDMAP header 18, CRC 4

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

/// One segment of a Send. Its defaults are right; any field can be made wrong.
struct Segment {
  uint32_t incarnation = 1;
  uint32_t msn = 0;
  uint32_t offset = 0;
  bool last = true;
  bool solicited = false;
  uint32_t q_key = 0;
  std::vector<std::byte> payload = {};

  uint8_t version = 1;
  uint8_t datagram_class = 0;
  uint8_t flags = 0;  // besides the solicited one
  uint16_t reserved = 0;
  uint8_t ddp_reserved = 0;
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
  uint8_t opcode = 0;  // 0: the one that fits
  uint32_t queue_number = 0;
  uint32_t crc_error = 0;  // xored
};

inline std::vector<std::byte> to_bytes(const Segment& segment) {
  std::vector<std::byte> out;
  const uint8_t opcode = segment.opcode != 0 ? segment.opcode : segment.solicited ? 5 : 3;
  append(out, uint64_t{segment.version} << 4 | segment.datagram_class, 1);
  append(out, segment.flags | (segment.solicited ? 2U : 0U), 1);
  append(out, segment.reserved, 2);
  append(out, segment.incarnation, 4);
  append(out,
         (segment.last ? 0x40U : 0U) | uint64_t{segment.ddp_reserved} << 2 | segment.ddp_version,
         1);
  append(out, uint64_t{segment.rdmap_version} << 6 | opcode, 1);
  append(out, segment.q_key, 4);
  append(out, segment.queue_number, 4);
  append(out, segment.msn, 4);
  append(out, segment.offset, 4);
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  const uint32_t crc = castagnoli(out) ^ segment.crc_error;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(crc >> shift));
  return out;
}

inline uint32_t read_be32(std::span<const std::byte> bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return value;
}

// What a datagram on the wire says.
inline bool last_of(std::span<const std::byte> datagram) {
  return (std::to_integer<unsigned>(datagram[8]) & 0x40U) != 0;
}
inline uint32_t msn_of(std::span<const std::byte> datagram) { return read_be32(datagram, 18); }
inline uint32_t offset_of(std::span<const std::byte> datagram) { return read_be32(datagram, 22); }
inline size_t payload_of(std::span<const std::byte> datagram) {
  return datagram.size() - kOverhead;
}

}  // namespace diwarp::test
