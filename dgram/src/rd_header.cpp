// SPDX-License-Identifier: Apache-2.0
#include "dgram/rd_header.h"

#include <bit>
#include <cassert>

#include "base/byte_order.h"

namespace diwarp::dgram {
namespace {

constexpr size_t kFlagsAt = 1;
constexpr size_t kWindowAt = 2;
constexpr size_t kEpochAt = 4;
constexpr size_t kPeerEpochAt = 8;
constexpr size_t kPeerIncarnationAt = 12;
constexpr size_t kSequenceAt = 16;
constexpr size_t kAcknowledgedAt = 20;
static_assert(kAcknowledgedAt + sizeof(uint32_t) == kRdHeaderBytes);

/// What stands behind the header of each kind, by its number.
struct KindFacts {
  size_t shortest;
  size_t longest;
  uint8_t flags;      // that it may have
  bool numbered;      // has a sequence number
  bool acknowledges;  // has `acknowledged`
};
constexpr size_t kAny = SIZE_MAX;
constexpr std::array<KindFacts, 9> kKinds{{
    {0, 0, 0, false, false},  // no kind
    {1, kAny, 0, true, true},
    {0, 0, 0, true, true},
    {kRdFailureBytes, kRdFailureBytes, 0, true, true},
    {0, kRdMapWords * sizeof(uint64_t), 0, false, true},
    {0, 0, 0, false, true},
    {kRdCodeBytes, kRdCodeBytes, 0, true, true},
    {kRdCookieBytes, kRdCookieBytes, kRdBrokenFlag, false, false},
    {0, 0, kRdBrokenFlag, false, false},
}};

RdHeader read(const std::byte* at) {
  return {.kind = static_cast<RdKind>(at[0]),
          .flags = std::to_integer<uint8_t>(at[kFlagsAt]),
          .window = load_be<uint16_t>(at + kWindowAt),
          .epoch = load_be<uint32_t>(at + kEpochAt),
          .peer_epoch = load_be<uint32_t>(at + kPeerEpochAt),
          .peer_incarnation = load_be<uint32_t>(at + kPeerIncarnationAt),
          .sequence = load_be<uint32_t>(at + kSequenceAt),
          .acknowledged = load_be<uint32_t>(at + kAcknowledgedAt)};
}

bool fields_fit(const RdHeader& header, const KindFacts& facts) {
  if (!facts.numbered && header.sequence != 0) return false;
  if (!facts.acknowledges && header.acknowledged != 0) return false;
  if (header.epoch == 0) return false;
  // An open does not know the other's epoch; all others do.
  if ((header.kind == RdKind::open) != (header.peer_epoch == 0)) return false;
  return header.kind != RdKind::reset || header.window == 0;
}

RdHeaderFault judge(const RdHeader& header, size_t follows) {
  const KindFacts& facts = kKinds[static_cast<size_t>(header.kind)];
  if (follows < facts.shortest) return RdHeaderFault::truncated;
  const bool whole_words =
      header.kind != RdKind::acknowledgement || follows % sizeof(uint64_t) == 0;
  if (follows > facts.longest || !whole_words) return RdHeaderFault::excess;
  if ((header.flags & ~facts.flags) != 0) return RdHeaderFault::flags;
  return fields_fit(header, facts) ? RdHeaderFault::none : RdHeaderFault::fields;
}

}  // namespace

ParsedRdHeader parse_rd_header(ConstBytes body) {
  if (body.size() < kRdHeaderBytes) return {.fault = RdHeaderFault::truncated};
  const auto kind = std::to_integer<size_t>(body[0]);
  if (kind == 0 || kind >= kKinds.size()) return {.fault = RdHeaderFault::kind};
  const RdHeader header = read(body.data());
  const ConstBytes rest = body.subspan(kRdHeaderBytes);
  return {.fault = judge(header, rest.size()), .header = header, .rest = rest};
}

size_t encode_rd_header(const RdHeader& header, Bytes out) {
  assert(out.size() >= kRdHeaderBytes);
  std::byte* at = out.data();
  at[0] = static_cast<std::byte>(header.kind);
  at[kFlagsAt] = std::byte{header.flags};
  store_be(at + kWindowAt, header.window);
  store_be(at + kEpochAt, header.epoch);
  store_be(at + kPeerEpochAt, header.peer_epoch);
  store_be(at + kPeerIncarnationAt, header.peer_incarnation);
  store_be(at + kSequenceAt, header.sequence);
  store_be(at + kAcknowledgedAt, header.acknowledged);
  return kRdHeaderBytes;
}

size_t RdMap::size() const {
  for (size_t word = count; word != 0; --word)
    if (words[word - 1] != 0)
      return word * 64 - static_cast<size_t>(std::countr_zero(words[word - 1]));
  return 0;
}

size_t encode_rd_map(const RdMap& map, Bytes out) {
  assert(out.size() >= map.count * sizeof(uint64_t));
  for (size_t word = 0; word < map.count; ++word)
    store_be(out.data() + word * sizeof(uint64_t), map.words[word]);
  return map.count * sizeof(uint64_t);
}

RdMap decode_rd_map(ConstBytes rest) {
  RdMap map;
  map.count = rest.size() / sizeof(uint64_t);
  assert(map.count <= kRdMapWords);
  for (size_t word = 0; word < map.count; ++word)
    map.words[word] = load_be<uint64_t>(rest.data() + word * sizeof(uint64_t));
  return map;
}

size_t encode_rd_code(const RdCode& code, Bytes out) {
  assert(out.size() >= kRdCodeBytes);
  out[0] = static_cast<std::byte>(code.layer << 4 | (code.type & 15));
  out[1] = std::byte{code.code};
  out[2] = out[3] = std::byte{0};
  return kRdCodeBytes;
}

RdCode decode_rd_code(ConstBytes rest) {
  assert(rest.size() >= kRdCodeBytes);
  const auto first = std::to_integer<uint8_t>(rest[0]);
  return {static_cast<uint8_t>(first >> 4), static_cast<uint8_t>(first & 15),
          std::to_integer<uint8_t>(rest[1])};
}

}  // namespace diwarp::dgram
