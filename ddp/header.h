// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_order.h"
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

namespace detail {

// The control octet: T, L, four reserved bits, DV (RFC 5041 section 4.1).
inline constexpr uint8_t kTaggedBit = 0x80;
inline constexpr uint8_t kLastBit = 0x40;  // guard(rows:ddp-control): 0x40 => 0x20
inline constexpr uint8_t kReservedMask = 0x0F;
inline constexpr int kReservedShift = 2;
inline constexpr uint8_t kVersionMask = 0x03;

// Where the fields stand (RFC 5041 figures 3 and 5).
inline constexpr size_t kUlpControlAt = 1;
inline constexpr size_t kStagAt = 2;
inline constexpr size_t kTaggedOffsetAt = 6;
inline constexpr size_t kUlpWordAt = 2;
inline constexpr size_t kQueueNumberAt = 6;
inline constexpr size_t kMsnAt = 10;
inline constexpr size_t kMessageOffsetAt = 14;
static_assert(kTaggedOffsetAt + sizeof(uint64_t) == kTaggedHeaderBytes);
static_assert(kMessageOffsetAt + sizeof(uint32_t) == kUntaggedHeaderBytes);

inline uint8_t control_octet(const Header& header) {
  return static_cast<uint8_t>((header.tagged ? kTaggedBit : 0) | (header.last ? kLastBit : 0) |
                              (header.reserved & kReservedMask) << kReservedShift |
                              (header.version & kVersionMask));
}

}  // namespace detail

/// Writes the header into the front of `out`, which must have room for header_bytes(); returns the
/// number of bytes written.
inline size_t encode(const Header& header, Bytes out) {
  using namespace detail;
  assert(out.size() >= header_bytes(header.tagged));
  std::byte* at = out.data();
  at[0] = std::byte{control_octet(header)};
  at[kUlpControlAt] = std::byte{header.ulp_control};  // guard(rows:control-octet)
  if (header.tagged) {
    store_be(at + kStagAt, header.stag);
    store_be(at + kTaggedOffsetAt, header.tagged_offset);
  } else {
    store_be(at + kUlpWordAt, header.ulp_word);
    // guard(rows:untagged-layout): store_be(at + kQueueNumberAt, header.queue_number); store_be(at
    //     + kMsnAt, header.msn) => store_be(at + kMsnAt, header.queue_number); store_be(at +
    //     kQueueNumberAt, header.msn)
    store_be(at + kQueueNumberAt, header.queue_number);
    store_be(at + kMsnAt, header.msn);
    store_be(at + kMessageOffsetAt, header.message_offset);
  }
  return header_bytes(header.tagged);
}

/// The version that the first octet tells, before anything else is believed; nothing if there is
/// none.
std::optional<uint8_t> peek_version(ConstBytes in);
/// Whether the first octet says tagged; false if there is none.
bool peek_tagged(ConstBytes in);

/// Reads a header from the front of `in`; nothing if `in` is too short for the form that its first
/// bit announces. Versions and reserved bits are reported, not checked.
inline std::optional<Header> decode(ConstBytes in) {
  using namespace detail;
  if (in.empty()) return std::nullopt;
  const std::byte* at = in.data();
  const auto control = std::to_integer<uint8_t>(at[0]);
  const bool tagged = (control & kTaggedBit) != 0;
  if (in.size() < header_bytes(tagged)) return std::nullopt;  // guard(rows:short-ulpdu)

  Header header{.tagged = tagged,
                .last = (control & kLastBit) != 0,
                .version = static_cast<uint8_t>(control & kVersionMask),
                .reserved = static_cast<uint8_t>((control >> kReservedShift) & kReservedMask),
                .ulp_control = std::to_integer<uint8_t>(at[kUlpControlAt])};
  if (tagged) {
    header.stag = load_be<uint32_t>(at + kStagAt);
    header.tagged_offset = load_be<uint64_t>(at + kTaggedOffsetAt);
  } else {
    header.ulp_word = load_be<uint32_t>(at + kUlpWordAt);  // guard(rows:ulp-fields)
    header.queue_number = load_be<uint32_t>(at + kQueueNumberAt);
    header.msn = load_be<uint32_t>(at + kMsnAt);
    header.message_offset = load_be<uint32_t>(at + kMessageOffsetAt);
  }
  return header;
}

}  // namespace diwarp::ddp
