// SPDX-License-Identifier: Apache-2.0
#include "dgram/rd_header.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/byte_order.h"
#include "base/siphash.h"

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

constexpr int kSkipKindShift = 24;  // of a skip's first word
constexpr size_t kSecondWordAt = sizeof(uint32_t);
constexpr size_t kCookieAt = sizeof(uint64_t);
static_assert(kCookieAt + sizeof(Cookie) == kRdProofBytes);
constexpr std::array kSequenceLabel{std::byte{'s'}, std::byte{'e'}, std::byte{'q'}, std::byte{'u'},
                                    std::byte{'e'}, std::byte{'n'}, std::byte{'c'}, std::byte{'e'}};

/// The body that follows the header of each kind, by its number.
struct KindInfo {
  size_t shortest;
  size_t longest;
  uint8_t flags;      // that it may have
  bool numbered;      // has a sequence number
  bool acknowledges;  // has `acknowledged`
};
constexpr size_t kAny = SIZE_MAX;
constexpr std::array<KindInfo, 9> kKinds{{
    {0, 0, 0, false, false},  // no kind
    {1, kAny, kRdRemembersFlag, true, true},
    {kRdSkipBytes, kRdSkipBytes, kRdRemembersFlag, true, true},
    {kRdFailureBytes, kRdFailureBytes, kRdRemembersFlag, true, true},
    {0, kRdMapWords * sizeof(uint64_t), kRdRemembersFlag | kRdWaitsFlag, false, true},
    {0, 0, kRdRemembersFlag, true, true},
    {kRdCodeBytes, kRdCodeBytes, kRdRemembersFlag, true, true},
    {kRdProofBytes, kRdProofBytes, kRdBrokenFlag | kRdRemembersFlag, false, false},
    {0, 0, kRdBrokenFlag, true, false},
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

bool fields_fit(const RdHeader& header, const KindInfo& info) {
  if (!info.numbered && header.sequence != 0) return false;
  if (!info.acknowledges && header.acknowledged != 0) return false;
  if (header.epoch == 0) return false;
  // An open does not know the other's epoch; all others do.
  if ((header.kind == RdKind::open) != (header.peer_epoch == 0)) return false;
  return header.kind != RdKind::reset || header.window == 0;
}

/// A kind of message that is known, and zeros where nothing is said.
bool is_skip(ConstBytes rest) {
  const auto word = load_be<uint32_t>(rest.data());
  const uint32_t kind = word >> kSkipKindShift;
  // guard(dgram): without kind >= static_cast<uint32_t>(MessageKind::send) &&
  // guard(dgram): without kind <= static_cast<uint32_t>(MessageKind::read_response) &&
  return kind >= static_cast<uint32_t>(MessageKind::send) &&
         kind <= static_cast<uint32_t>(MessageKind::read_response) &&
         word == kind << kSkipKindShift;  // guard(dgram): word == kind << kSkipKindShift => true
}

RdHeaderFault check(const RdHeader& header, ConstBytes rest) {
  const KindInfo& info = kKinds[static_cast<size_t>(header.kind)];
  if (rest.size() < info.shortest) return RdHeaderFault::truncated;
  const bool whole_words =
      header.kind != RdKind::acknowledgement || rest.size() % sizeof(uint64_t) == 0;
  if (rest.size() > info.longest || !whole_words) return RdHeaderFault::excess;
  if ((header.flags & ~info.flags) != 0) return RdHeaderFault::flags;
  const bool fits = fields_fit(header, info) && (header.kind != RdKind::skip || is_skip(rest));
  return fits ? RdHeaderFault::none : RdHeaderFault::fields;
}

}  // namespace

ParsedRdHeader parse_rd_header(ConstBytes body) {
  if (body.size() < kRdHeaderBytes) return {.fault = RdHeaderFault::truncated};
  const auto kind = std::to_integer<size_t>(body[0]);
  if (kind == 0 || kind >= kKinds.size()) return {.fault = RdHeaderFault::kind};
  const RdHeader header = read(body.data());
  const ConstBytes rest = body.subspan(kRdHeaderBytes);
  return {.fault = check(header, rest), .header = header, .rest = rest};
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

size_t encode_rd_skip(const MessageName& name, Bytes out) {
  assert(out.size() >= kRdSkipBytes);
  store_be(out.data(), static_cast<uint32_t>(name.kind) << kSkipKindShift);
  store_be(out.data() + kSecondWordAt, name.number);
  return kRdSkipBytes;
}

MessageName decode_rd_skip(ConstBytes rest) {
  assert(rest.size() >= kRdSkipBytes);
  return {static_cast<MessageKind>(rest[0]), load_be<uint32_t>(rest.data() + kSecondWordAt)};
}

size_t encode_rd_failure(const RdFailure& failure, Bytes out) {
  assert(out.size() >= kRdFailureBytes);
  store_be(out.data(), failure.sink_stag);
  store_be(out.data() + kSecondWordAt, failure.code);
  return kRdFailureBytes;
}

RdFailure decode_rd_failure(ConstBytes rest) {
  assert(rest.size() >= kRdFailureBytes);
  return {load_be<uint32_t>(rest.data()), load_be<uint32_t>(rest.data() + kSecondWordAt)};
}

size_t encode_rd_code(uint32_t code, Bytes out) {
  assert(out.size() >= kRdCodeBytes);
  store_be(out.data(), code);
  return kRdCodeBytes;
}

uint32_t decode_rd_code(ConstBytes rest) {
  assert(rest.size() >= kRdCodeBytes);
  return load_be<uint32_t>(rest.data());
}

size_t encode_rd_proof(const Challenge& proof, Bytes out) {
  assert(out.size() >= kRdProofBytes);
  store_be(out.data(), proof.nonce);
  std::copy(proof.cookie.begin(), proof.cookie.end(), out.begin() + kCookieAt);
  return kRdProofBytes;
}

Challenge decode_rd_proof(ConstBytes rest) {
  assert(rest.size() >= kRdProofBytes);
  Challenge proof{.nonce = load_be<uint64_t>(rest.data())};
  std::copy_n(rest.begin() + kCookieAt, sizeof(Cookie), proof.cookie.begin());
  return proof;
}

uint32_t first_sequence(const EndNames& sender, const EndNames& receiver) {
  const SipKey names{uint64_t{sender.incarnation} << 32 | sender.epoch,
                     uint64_t{receiver.incarnation} << 32 | receiver.epoch};
  return static_cast<uint32_t>(siphash(names, kSequenceLabel));
}

}  // namespace diwarp::dgram
