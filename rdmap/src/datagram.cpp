// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include <cassert>
#include <optional>

#include "base/byte_order.h"
#include "base/crc32c.h"
#include "diwarp/types.h"

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
constexpr uint32_t kSolicitedFlag = 2;
constexpr size_t kIncarnationAt = 4;

constexpr size_t kSendHeaders = kPrefixBytes + ddp::kUntaggedHeaderBytes;

constexpr uint32_t first_word(bool solicited) {
  return uint32_t{kDatagramVersion} << kVersionShift |
         static_cast<uint32_t>(DatagramClass::unreliable) << kClassShift |
         (solicited ? kSolicitedFlag << kFlagsShift : 0);
}

constexpr bool is_solicited(uint32_t word) { return (word >> kFlagsShift & kSolicitedFlag) != 0; }

/// Why a datagram is dropped, or nothing.
using Fault = std::optional<Counter>;

Fault judge_prefix(uint32_t word) {
  if (word >> kVersionShift != kDatagramVersion) return Counter::drop_version;
  const uint32_t datagram_class = word >> kClassShift & kClassMask;
  if (datagram_class != static_cast<uint32_t>(DatagramClass::unreliable)) {
    return Counter::drop_class;
  }
  if ((word >> kFlagsShift & kFlagsMask & ~kSolicitedFlag) != 0) return Counter::drop_flags;
  if ((word & kReservedMask) != 0) return Counter::drop_reserved;
  return {};
}

Fault judge_header(const ddp::Header& header, bool solicited, size_t payload) {
  if (header.version != ddp::kVersion) return Counter::drop_ddp_version;
  if (header.reserved != 0 || reserved_of(header.ulp_control) != 0) return Counter::drop_reserved;
  if (version_of(header.ulp_control) != kVersion) return Counter::drop_rdmap_version;
  const OpcodeFacts* facts = find_opcode(opcode_of(header.ulp_control));
  if (facts == nullptr || !facts->on_datagrams) return Counter::drop_opcode;
  if (header.tagged != facts->tagged) return Counter::drop_opcode;
  if (header.queue_number != facts->queue_number) return Counter::drop_queue_number;
  if (solicited != facts->solicited) return Counter::drop_flags;
  if (uint64_t{header.message_offset} + payload > kMaxMessage) return Counter::drop_oversized;
  return {};
}

ParsedDatagram dropped(Counter reason) { return {.valid = false, .drop_reason = reason}; }

}  // namespace

size_t encode_send_headers(const SendSegment& segment, Bytes out) {
  assert(out.size() >= kSendHeaders);
  store_be(out.data(), first_word(segment.solicited));
  store_be(out.data() + kIncarnationAt, segment.incarnation);
  const Opcode opcode = segment.solicited ? Opcode::send_solicited : Opcode::send;
  return kPrefixBytes + ddp::encode({.last = segment.last,
                                     .ulp_control = control_octet(opcode),
                                     .ulp_word = segment.q_key,
                                     .queue_number = 0,
                                     .msn = segment.msn,
                                     .message_offset = segment.message_offset},
                                    out.subspan(kPrefixBytes));
}

void encode_datagram_crc(uint32_t crc, Bytes out) {
  assert(out.size() >= kDatagramCrcBytes);
  store_crc32c(out.data(), crc);
}

ParsedDatagram parse_datagram(ConstBytes datagram) {
  if (datagram.size() < kSendOverhead) return dropped(Counter::drop_truncated);
  const auto word = load_be<uint32_t>(datagram.data());
  if (const Fault fault = judge_prefix(word)) return dropped(*fault);

  const ConstBytes covered = datagram.first(datagram.size() - kDatagramCrcBytes);
  if (crc32c(covered) != load_crc32c(covered.data() + covered.size())) {
    return dropped(Counter::drop_crc);
  }

  // Long enough for either form of the header, so there is one.
  const ddp::Header header = *ddp::decode(covered.subspan(kPrefixBytes));
  const ConstBytes payload = covered.subspan(kSendHeaders);
  const bool solicited = is_solicited(word);
  if (const Fault fault = judge_header(header, solicited, payload.size())) return dropped(*fault);

  return {.valid = true,
          .segment = {.incarnation = load_be<uint32_t>(datagram.data() + kIncarnationAt),
                      .solicited = solicited,
                      .last = header.last,
                      .q_key = header.ulp_word,
                      .msn = header.msn,
                      .message_offset = header.message_offset,
                      .payload = payload}};
}

}  // namespace diwarp::rdmap
