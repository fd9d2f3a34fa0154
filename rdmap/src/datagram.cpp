// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include <cassert>
#include <optional>

#include "base/byte_order.h"
#include "base/crc32c.h"

namespace diwarp::rdmap {
namespace {

// The first word of the prefix: version (4 bits), class (4), flags (8), reserved (16). The second
// is the incarnation.
constexpr int kVersionShift = 28;
constexpr int kClassShift = 24;
constexpr uint32_t kClassMask = 0x0F;
constexpr int kFlagsShift = 16;
constexpr uint32_t kFlagsMask = 0xFF;
constexpr uint32_t kReservedMask = 0xFFFF;
constexpr size_t kIncarnationAt = 4;

constexpr uint32_t kLastClass = static_cast<uint32_t>(DatagramClass::control);

constexpr uint32_t class_of(uint32_t word) { return word >> kClassShift & kClassMask; }
constexpr uint32_t flags_of(uint32_t word) { return word >> kFlagsShift & kFlagsMask; }

constexpr uint32_t known_flags(uint32_t datagram_class) {
  return datagram_class == kLastClass ? 0 : kImmediateFlag | kSolicitedFlag;
}

/// Why a datagram is dropped, or nothing.
using Fault = std::optional<Counter>;

Fault judge_prefix(uint32_t word) {
  if (word >> kVersionShift != kDatagramVersion) return Counter::drop_version;
  if (class_of(word) > kLastClass) return Counter::drop_class;
  if ((flags_of(word) & ~known_flags(class_of(word))) != 0) return Counter::drop_flags;
  if ((word & kReservedMask) != 0) return Counter::drop_reserved;
  return {};
}

ParsedEnvelope dropped(Counter reason) { return {.valid = false, .drop_reason = reason}; }

}  // namespace

size_t encode_prefix(DatagramClass datagram_class, uint8_t flags, uint32_t incarnation, Bytes out) {
  assert(out.size() >= kPrefixBytes);
  store_be(out.data(), uint32_t{kDatagramVersion} << kVersionShift |
                           static_cast<uint32_t>(datagram_class) << kClassShift |
                           uint32_t{flags} << kFlagsShift);
  store_be(out.data() + kIncarnationAt, incarnation);
  return kPrefixBytes;
}

void encode_datagram_crc(uint32_t crc, Bytes out) {
  assert(out.size() >= kDatagramCrcBytes);
  store_crc32c(out.data(), crc);
}

ParsedEnvelope parse_envelope(ConstBytes datagram) {
  if (datagram.size() < kPrefixBytes + kDatagramCrcBytes) return dropped(Counter::drop_truncated);
  const auto word = load_be<uint32_t>(datagram.data());
  if (const Fault fault = judge_prefix(word)) return dropped(*fault);

  const ConstBytes covered = datagram.first(datagram.size() - kDatagramCrcBytes);
  if (crc32c(covered) != load_crc32c(covered.data() + covered.size())) {
    return dropped(Counter::drop_crc);
  }
  return {.valid = true,
          .envelope = {.datagram_class = static_cast<DatagramClass>(class_of(word)),
                       .flags = static_cast<uint8_t>(flags_of(word)),
                       .incarnation = load_be<uint32_t>(datagram.data() + kIncarnationAt),
                       .body = covered.subspan(kPrefixBytes)}};
}

}  // namespace diwarp::rdmap
