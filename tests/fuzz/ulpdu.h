// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stack/datagram_writing.h"

/// DDP segments of a stream (RFC 5041 section 4, RFC 5040 section 4), written and read without the
/// library's own code.
namespace diwarp::fuzz {

using ByteList = std::vector<std::byte>;

/// The opcodes of RDMAP (RFC 5040 figure 3, RFC 7306 figure 3).
namespace opcode {
inline constexpr uint8_t kWrite = 0;
inline constexpr uint8_t kReadRequest = 1;
inline constexpr uint8_t kReadResponse = 2;
inline constexpr uint8_t kSend = 3;  // with invalidate 4, solicited 5, both 6
inline constexpr uint8_t kTerminate = 7;
inline constexpr uint8_t kImmediate = 8;  // solicited 9
inline constexpr uint8_t kAtomicRequest = 10;
inline constexpr uint8_t kAtomicResponse = 11;
}  // namespace opcode

inline constexpr size_t kTaggedHeader = 14;
inline constexpr size_t kUntaggedHeader = 18;

/// One segment. `control` and `rdmap` are the two octets before the rest: right ones by default.
struct Ulpdu {
  bool tagged = false;
  bool last = true;
  uint8_t opcode = opcode::kSend;
  uint32_t stag = 0;    ///< tagged; untagged: the STag to invalidate
  uint64_t offset = 0;  ///< tagged
  uint32_t queue = 0;   ///< untagged: these three
  uint32_t msn = 0;
  uint32_t mo = 0;
  ByteList body = {};
  uint8_t control_error = 0;  ///< xored
  uint8_t rdmap_error = 0;    ///< xored
};

inline ByteList to_bytes(const Ulpdu& ulpdu) {
  using test::append;
  ByteList out;
  append(out, ((ulpdu.tagged ? 0x80U : 0U) | (ulpdu.last ? 0x40U : 0U) | 1U) ^ ulpdu.control_error,
         1);
  append(out, (0x40U | ulpdu.opcode) ^ ulpdu.rdmap_error, 1);
  append(out, ulpdu.stag, 4);
  if (ulpdu.tagged) {
    append(out, ulpdu.offset, 8);
  } else {
    for (const uint32_t word : {ulpdu.queue, ulpdu.msn, ulpdu.mo}) append(out, word, 4);
  }
  out.insert(out.end(), ulpdu.body.begin(), ulpdu.body.end());
  return out;
}

inline uint64_t number_in(std::span<const std::byte> bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (const std::byte byte : bytes.subspan(at, width))
    value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

}  // namespace diwarp::fuzz
