// SPDX-License-Identifier: Apache-2.0
#include "fuzz/stranger_messages.h"

#include <algorithm>

namespace diwarp::fuzz {

using test::ReliableHeader;
using test::Segment;

namespace {

std::vector<std::byte> filled(size_t length, uint8_t value) {
  return std::vector<std::byte>(length, static_cast<std::byte>(value));
}

void fill_send(Input& input, const StrangerTarget& target, Segment& made, uint8_t bits) {
  const uint8_t place = input.u8();
  made.offset = place < 0xf0 ? place % 8 * 16u : input.u32();
  made.payload = filled((bits & 8) != 0 ? input.u8() * 4u : 16, 0x5a);
  made.q_key = target.q_key ^ ((bits & 0xc0) == 0xc0 ? 1u : 0u);
  if ((bits & 0x30) != 0x30) return;
  made.opcode = made.solicited ? test::kSolicitedInvalidate : test::kSendInvalidate;
  made.q_key = target.stag(input.u8());
}

void fill_record(Input& input, const StrangerTarget& target, Segment& made, uint8_t bits) {
  const uint8_t place = input.u8();
  made.opcode = test::kWriteRecord;
  made.stag = target.stag(input.u8());
  made.offset = place % 8 * 16u;
  made.payload = filled((bits & 8) != 0 ? input.u8() * 4u : 16, 0x33);
  made.message_length = (bits & 16) != 0 ? input.u16() : 64;
  made.last = (bits & 1) == 0 && made.offset + made.payload.size() == *made.message_length;
  made.tagged_offset = target.base + made.offset + (place >> 3) * 32u;
  if ((bits & 0xe0) == 0xe0) made.tagged_offset = input.u64();
}

void fill_read_request(Input& input, const StrangerTarget& target, Segment& made, uint8_t bits) {
  made.opcode = test::kReadRequest;
  made.sink_stag = input.u8();
  made.read_length = (bits & 8) != 0 ? input.u16() : 64;
  made.source_stag = target.stag(input.u8());
  made.source_offset = target.base + ((bits & 16) != 0 ? input.u16() : 0);
  if ((bits & 0xe0) == 0xe0) made.source_offset = input.u64();
  if ((bits & 0xe0) == 0xc0) made.payload = filled(3, 1);
}

void fill_read_response(Input& input, const StrangerKnowledge& known, Segment& made, uint8_t bits) {
  made.opcode = test::kReadResponse;
  made.stag = known.sink + ((bits & 0xe0) == 0xe0 ? input.u8() : 0);
  made.tagged_offset = (bits & 8) != 0 ? input.u8() * 16u : 0;
  const uint32_t length = (bits & 16) != 0 ? input.u8() * 4u : std::min(known.sink_length, 1200u);
  made.payload = filled(length, 0x77);
  made.last = ((bits & 1) == 0) == (made.tagged_offset + length == known.sink_length);
}

}  // namespace

Segment make_segment(Input& input, const StrangerTarget& target, const StrangerKnowledge& known) {
  Segment made{.incarnation = known.incarnation};
  const uint8_t kind = input.u8();
  const uint8_t bits = input.u8();
  made.msn = known.msn + input.u8() % 8;
  made.last = (bits & 1) == 0;
  made.solicited = (bits & 2) != 0;
  if ((bits & 4) != 0) made.immediate = bits;
  switch (kind % 4) {
    case 0:
      fill_send(input, target, made, bits);
      break;
    case 1:
      fill_record(input, target, made, bits);
      break;
    case 2:
      fill_read_request(input, target, made, bits);
      break;
    default:
      fill_read_response(input, known, made, bits);
  }
  if (kind < 0xf0) return made;
  made.ddp_reserved = input.u8() & 15;
  made.rdmap_version = input.u8() & 3;
  made.ddp_version = input.u8() & 3;
  made.queue_number = input.u8() & 1;
  made.wrong_form = input.flag();
  return made;
}

ReliableHeader make_header(Input& input, StrangerKnowledge& known, uint8_t kind) {
  const uint8_t bits = input.u8();
  ReliableHeader made{.kind = kind,
                      .flags = static_cast<uint8_t>(bits >= 0xf0 ? 1 : 0),
                      .window = static_cast<uint16_t>((bits & 1) != 0 ? input.u8() : 100),
                      .epoch = known.epoch,
                      .peer_epoch = known.peer_epoch,
                      .peer_incarnation = known.peer_incarnation,
                      .acknowledged = known.acknowledged};
  if (kind >= test::kRdData && kind <= test::kRdFailure) made.sequence = known.next++;
  if (kind == test::kRdProbe) made.sequence = known.next - 1;
  if (kind == test::kRdRefusal || kind == test::kRdReset) made.sequence = known.acknowledged + 1;
  if (kind == test::kRdReset) made.window = 0;
  if (kind == test::kRdReset) made.acknowledged = 0;
  if ((bits & 6) == 6) made.sequence += input.u8() - 128u;
  if ((bits & 24) == 24) made.acknowledged += input.u8() - 128u;
  if ((bits & 0x60) == 0x60) made.sequence = input.u32();
  return made;
}

/// Mostly a few words; at times many, up to twice as many as there may be.
uint32_t map_words(Input& input) {
  const uint8_t bits = input.u8();
  return bits < 0xf0 ? bits % 4 : 1u << (bits & 7);
}

std::vector<std::byte> make_content(Input& input, const StrangerKnowledge& known, uint8_t kind) {
  std::vector<std::byte> made;
  switch (kind) {
    case test::kRdSkip:
      return test::skip_content(static_cast<uint8_t>(input.u8() % 6),
                                input.flag() ? known.sink : known.msn + input.u8() % 8);
    case test::kRdFailure:
      test::append(made, known.sink, 4);
      test::append(made, input.u32(), 4);
      return made;
    case test::kRdRefusal:
      test::append(made, input.u32(), 4);
      return made;
    case test::kRdAcknowledgement:
      for (uint32_t words = map_words(input); words > 0; --words)
        test::append(made, input.u64(), 8);
      return made;
    default:
      return made;
  }
}

std::vector<std::byte> make_error_content(Input& input, const StrangerKnowledge& known) {
  const uint8_t bits = input.u8();
  test::ErrorContent made{.layer = static_cast<uint8_t>(bits & 3),
                          .type = static_cast<uint8_t>(bits >> 2 & 3),
                          .code = static_cast<uint8_t>(bits >> 4 & 7),
                          .segment_bytes = input.u8()};
  const size_t headers = input.flag() ? 46 : input.flag() ? 26 : 18;
  for (const auto& one : known.heard)
    if (one.size() >= 8 + headers)
      made.headers.assign(one.begin() + 8, one.begin() + 8 + static_cast<ptrdiff_t>(headers));
  return test::to_bytes(made);
}

}  // namespace diwarp::fuzz
