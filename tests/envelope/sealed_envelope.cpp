// SPDX-License-Identifier: Apache-2.0
#include "sealed_envelope.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "base/byte_order.h"

namespace diwarp::dgram {
namespace {

constexpr size_t kClassAt = 8;
constexpr size_t kFlagsAt = 9;
constexpr size_t kIncarnationAt = 12;
constexpr size_t kComplementAt = 16;

/// The byte that masks the body's byte at `position`.
std::byte mask(uint64_t nonce, uint64_t position) {
  const uint64_t word = (nonce + position + 1) * 0x9E3779B97F4A7C15;
  return static_cast<std::byte>(word >> 56);
}

class Sums {
 public:
  void update(ConstBytes bytes) {
    for (const std::byte byte : bytes) {
      one_ = (one_ ^ std::to_integer<uint64_t>(byte)) * 0x100000001B3;
      two_ = (two_ + std::to_integer<uint64_t>(byte) + 1) * 0x9E3779B97F4A7C15;
    }
  }
  void store(Bytes trailer) const {
    store_be(trailer.data(), one_);
    store_be(trailer.data() + sizeof one_, two_);
  }

 private:
  uint64_t one_ = 0xCBF29CE484222325;
  uint64_t two_ = 1;
};

void write_prefix(const Labels& labels, uint64_t nonce, Bytes out) {
  store_be(out.data(), nonce);
  out[kClassAt] = static_cast<std::byte>(labels.datagram_class);
  out[kFlagsAt] = std::byte{labels.flags};
  store_be(out.data() + kFlagsAt + 1, uint16_t{0});
  store_be(out.data() + kIncarnationAt, labels.incarnation);
  store_be(out.data() + kComplementAt, ~nonce);
}

void apply_mask(uint64_t nonce, uint64_t position, Bytes bytes) {
  for (std::byte& byte : bytes) byte ^= mask(nonce, position++);
}

bool is_right(ConstBytes covered, ConstBytes trailer) {
  Sums sums;
  sums.update(covered);
  std::array<std::byte, SealedEnvelope::kTrailerBytes> expected;
  sums.store(expected);
  return std::equal(expected.begin(), expected.end(), trailer.begin());
}

}  // namespace

size_t SealedEnvelope::Sealer::seal(const Labels& labels, Bytes front, std::span<ConstBytes> rest,
                                    Bytes trailer) {
  const uint64_t nonce = ++nonce_ << 20;
  write_prefix(labels, nonce, front);
  const Bytes beginning = front.subspan(kPrefixBytes);
  apply_mask(nonce, 0, beginning);
  Sums sums;
  sums.update(front);
  uint64_t position = beginning.size();
  for (ConstBytes& piece : rest) {
    assert(used_ + piece.size() <= size_);
    const Bytes masked(masked_.get() + used_, piece.size());
    std::copy(piece.begin(), piece.end(), masked.begin());
    apply_mask(nonce, position, masked);
    sums.update(masked);
    piece = masked;
    used_ += masked.size();
    position += masked.size();
  }
  sums.store(trailer);
  return kPrefixBytes + position + kTrailerBytes;
}

OpenedEnvelope SealedEnvelope::open(Bytes datagram) {
  if (datagram.size() < kOverhead) return {.drop_reason = Counter::drop_truncated};
  const auto nonce = load_be<uint64_t>(datagram.data());
  if (load_be<uint64_t>(datagram.data() + kComplementAt) != ~nonce)
    return {.drop_reason = Counter::drop_version};
  const auto datagram_class = static_cast<DatagramClass>(datagram[kClassAt]);
  if (datagram_class > DatagramClass::control) return {.drop_reason = Counter::drop_class};
  const auto flags = std::to_integer<uint8_t>(datagram[kFlagsAt]);
  const bool is_control = datagram_class == DatagramClass::control;
  if ((flags & ~(is_control ? 0 : kSegmentFlags)) != 0) return {.drop_reason = Counter::drop_flags};
  const size_t covered = datagram.size() - kTrailerBytes;
  if (!is_right(datagram.first(covered), datagram.subspan(covered)))
    return {.drop_reason = Counter::drop_crc};
  const Bytes body = datagram.first(covered).subspan(kPrefixBytes);
  apply_mask(nonce, 0, body);
  return {.valid = true,
          .labels = {.datagram_class = datagram_class,
                     .flags = flags,
                     .incarnation = load_be<uint32_t>(datagram.data() + kIncarnationAt)},
          .body = body};
}

}  // namespace diwarp::dgram
