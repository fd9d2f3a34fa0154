// SPDX-License-Identifier: Apache-2.0
#include "dgram/crc32c_envelope.h"

#include <cassert>
#include <optional>

#include "base/byte_order.h"
#include "base/crc32c.h"

namespace diwarp::dgram {
namespace {

// The first word of the prefix; the second is the incarnation.
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
  // guard(datagram): datagram_class == kLastClass => false
  return datagram_class == kLastClass ? 0 : kSegmentFlags;
}

std::optional<Counter> check_prefix(uint32_t word) {
  // guard(datagram)
  if (word >> kVersionShift != Crc32cEnvelope::kVersion) return Counter::drop_version;
  if (class_of(word) > kLastClass) return Counter::drop_class;  // guard(datagram)
  // guard(datagram)
  if ((flags_of(word) & ~known_flags(class_of(word))) != 0) return Counter::drop_flags;
  if ((word & kReservedMask) != 0) return Counter::drop_reserved;  // guard(datagram)
  return {};
}

}  // namespace

size_t Crc32cEnvelope::seal(const Labels& labels, Bytes front, std::span<const ConstBytes> rest,
                            Bytes trailer) {
  assert(front.size() >= kPrefixBytes && trailer.size() >= kTrailerBytes);
  store_be(front.data(), uint32_t{kVersion} << kVersionShift |
                             static_cast<uint32_t>(labels.datagram_class) << kClassShift |
                             uint32_t{labels.flags} << kFlagsShift);
  store_be(front.data() + kIncarnationAt, labels.incarnation);
  Crc32c crc;
  crc.update(front);
  size_t bytes = front.size() + kTrailerBytes;
  for (const ConstBytes piece : rest) {
    crc.update(piece);
    bytes += piece.size();
  }
  store_crc32c(trailer.data(), crc.value());
  return bytes;
}

OpenedEnvelope Crc32cEnvelope::open(ConstBytes datagram) {
  // guard(datagram)
  if (datagram.size() < kOverhead) return {.drop_reason = Counter::drop_truncated};
  const auto word = load_be<uint32_t>(datagram.data());
  if (const auto fault = check_prefix(word)) return {.drop_reason = *fault};  // guard(datagram)
  const ConstBytes covered = datagram.first(datagram.size() - kTrailerBytes);
  // guard(datagram): condition => false
  if (crc32c(covered) != load_crc32c(covered.data() + covered.size()))
    return {.drop_reason = Counter::drop_crc};
  return {.valid = true,
          .labels = {.datagram_class = static_cast<DatagramClass>(class_of(word)),
                     .flags = static_cast<uint8_t>(flags_of(word)),
                     .incarnation = load_be<uint32_t>(datagram.data() + kIncarnationAt)},
          .body = covered.subspan(kPrefixBytes)};
}

std::optional<uint32_t> Crc32cEnvelope::quoted_incarnation(ConstBytes beginning) {
  if (beginning.size() < kPrefixBytes) return std::nullopt;
  return load_be<uint32_t>(beginning.data() + kIncarnationAt);
}

}  // namespace diwarp::dgram
