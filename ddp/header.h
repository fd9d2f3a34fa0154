// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

/// The headers of DDP segments (RFC 5041 section 4).
namespace diwarp::ddp {

inline constexpr size_t kTaggedHeaderBytes = 14;    // RFC 5041 figure 3
inline constexpr size_t kUntaggedHeaderBytes = 18;  // RFC 5041 figure 5
inline constexpr uint8_t kVersion = 1;

/// A DDP header in host order. Which fields mean something depends on `tagged`.
struct Header {
  bool tagged = false;
  bool last = false;
  uint8_t version = kVersion;
  uint8_t reserved = 0;     ///< the four reserved bits of the control octet; zero when sent
  uint8_t ulp_control = 0;  ///< first octet reserved for the ULP (RDMAP's control field)

  uint32_t stag = 0;           ///< tagged
  uint64_t tagged_offset = 0;  ///< tagged: TO

  uint32_t ulp_word = 0;        ///< untagged: the other four octets reserved for the ULP
  uint32_t queue_number = 0;    ///< untagged: QN
  uint32_t msn = 0;             ///< untagged
  uint32_t message_offset = 0;  ///< untagged: MO
};

constexpr size_t header_bytes(bool tagged) {
  return tagged ? kTaggedHeaderBytes : kUntaggedHeaderBytes;
}

/// Writes the header into the front of `out`, which must have room for header_bytes(); returns the
/// number of bytes written.
size_t encode(const Header& header, Bytes out);

/// The version that the first octet tells, before anything else is believed; nothing if there is
/// none.
std::optional<uint8_t> peek_version(ConstBytes in);
/// Whether the first octet says tagged; false if there is none.
bool peek_tagged(ConstBytes in);

/// Reads a header from the front of `in`; nothing if `in` is too short for the form that its first
/// bit announces. Versions and reserved bits are reported, not checked.
std::optional<Header> decode(ConstBytes in);

}  // namespace diwarp::ddp
