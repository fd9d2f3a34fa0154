// SPDX-License-Identifier: Apache-2.0
#include "ddp/header.h"

#include <cassert>

#include "base/byte_order.h"

namespace diwarp::ddp {
namespace {

// The control octet: T, L, four reserved bits, DV (RFC 5041 section 4.1).
constexpr uint8_t kTaggedBit = 0x80;
constexpr uint8_t kLastBit = 0x40;  // guard(rows:ddp-control): 0x40 => 0x20
constexpr uint8_t kReservedMask = 0x0F;
constexpr int kReservedShift = 2;
constexpr uint8_t kVersionMask = 0x03;

// Where the fields stand (RFC 5041 figures 3 and 5).
constexpr size_t kUlpControlAt = 1;
constexpr size_t kStagAt = 2;
constexpr size_t kTaggedOffsetAt = 6;
constexpr size_t kUlpWordAt = 2;
constexpr size_t kQueueNumberAt = 6;
constexpr size_t kMsnAt = 10;
constexpr size_t kMessageOffsetAt = 14;
static_assert(kTaggedOffsetAt + sizeof(uint64_t) == kTaggedHeaderBytes);
static_assert(kMessageOffsetAt + sizeof(uint32_t) == kUntaggedHeaderBytes);

uint8_t control_octet(const Header& header) {
  return static_cast<uint8_t>((header.tagged ? kTaggedBit : 0) | (header.last ? kLastBit : 0) |
                              (header.reserved & kReservedMask) << kReservedShift |
                              (header.version & kVersionMask));
}

}  // namespace

size_t encode(const Header& header, Bytes out) {
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

std::optional<uint8_t> peek_version(ConstBytes in) {
  if (in.empty()) return std::nullopt;
  return static_cast<uint8_t>(std::to_integer<uint8_t>(in[0]) & kVersionMask);
}

bool peek_tagged(ConstBytes in) {
  return !in.empty() && (std::to_integer<uint8_t>(in[0]) & kTaggedBit) != 0;
}

std::optional<Header> decode(ConstBytes in) {
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
