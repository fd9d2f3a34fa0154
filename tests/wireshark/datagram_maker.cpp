// SPDX-License-Identifier: Apache-2.0
#include "wireshark/datagram_maker.h"

#include <algorithm>
#include <array>

#include "wire/datagrams.h"

namespace diwarp::test {

using dgram::RdKind;
using rdmap::DatagramSegment;
using rdmap::Opcode;

namespace {

constexpr uint32_t kLongestMessage = uint32_t{1} << 30;

/// The highest offset at which so many bytes end at the last one or before.
uint64_t last_place(uint64_t length) { return length == 0 ? UINT64_MAX : UINT64_MAX - length + 1; }

bool has_sequence(RdKind kind) { return kind != RdKind::acknowledgement && kind != RdKind::open; }

bool has_acknowledged(RdKind kind) { return kind != RdKind::open && kind != RdKind::reset; }

uint8_t flags_allowed(RdKind kind) {
  switch (kind) {
    case RdKind::open:
      return dgram::kRdBrokenFlag | dgram::kRdRemembersFlag;
    case RdKind::reset:
      return dgram::kRdBrokenFlag;
    case RdKind::acknowledgement:
      return dgram::kRdRemembersFlag | dgram::kRdWaitsFlag;
    default:
      return dgram::kRdRemembersFlag;
  }
}

}  // namespace

uint32_t DatagramMaker::number() {
  constexpr std::array<uint32_t, 12> kBounds{
      0,          1,          0x7FFFFFFF,      0x80000000, 0xFFFFFFFF,          0xFFFFFFFE,
      0xFFFBFFFF, 0xFFFC0000, kLongestMessage, 262144,     kLongestMessage + 1, 262145};
  if (chance(60)) return static_cast<uint32_t>(random_());
  return kBounds[below(kBounds.size())];
}

std::vector<std::byte> DatagramMaker::bytes(size_t count) {
  std::vector<std::byte> made(count);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random_());
  return made;
}

// --- Segments.

DatagramSegment DatagramMaker::send() {
  constexpr std::array kSends{Opcode::send, Opcode::send_invalidate, Opcode::send_solicited,
                              Opcode::send_solicited_invalidate};
  DatagramSegment segment{.opcode = kSends[below(kSends.size())],
                          .last = chance(50),
                          .has_immediate = chance(30),
                          .immediate = number64(),
                          .q_key = number(),
                          .invalidate_stag = number(),
                          .msn = number(),
                          .payload = payload_};
  const auto most = static_cast<uint32_t>(kLongestMessage - payload_.size());
  segment.message_offset = std::min(number(), most);
  return segment;
}

DatagramSegment DatagramMaker::write_record() {
  DatagramSegment segment{.opcode = Opcode::write_record,
                          .has_immediate = chance(30),
                          .immediate = number64(),
                          .msn = number(),
                          .stag = number(),
                          .record_solicited = chance(30),
                          .payload = payload_};
  const auto length = static_cast<uint32_t>(payload_.size());
  segment.message_offset = std::min(number(), kLongestMessage - length);
  const uint32_t end = segment.message_offset + length;
  segment.message_length = chance(30) ? end : std::min(std::max(number(), end), kLongestMessage);
  segment.last = end == segment.message_length;
  const uint64_t base = std::min(number64(), last_place(segment.message_length));
  segment.tagged_offset =
      std::min(base, UINT64_MAX - segment.message_offset) + segment.message_offset;
  return segment;
}

DatagramSegment DatagramMaker::read_request() {
  DatagramSegment segment{
      .opcode = Opcode::read_request, .last = true, .nonce = number(), .msn = number()};
  segment.request = {.sink_stag = number(),
                     .sink_offset = 0,
                     .length = std::min(number(), rdmap::kMaxReadRequest),
                     .source_stag = number(),
                     .source_offset = number64()};
  segment.request.sink_offset = std::min(number64(), last_place(segment.request.length));
  return segment;
}

DatagramSegment DatagramMaker::read_response() {
  return {.opcode = Opcode::read_response,
          .last = chance(50),
          .stag = number(),
          .tagged_offset = std::min(number64(), last_place(payload_.size())),
          .payload = payload_};
}

DatagramSegment DatagramMaker::segment() {
  payload_ = bytes(chance(20) ? 0 : below(64));
  switch (below(4)) {
    case 0:
      return send();
    case 1:
      return write_record();
    case 2:
      return read_request();
    default:
      return read_response();
  }
}

// --- Control messages.

dgram::Challenge DatagramMaker::challenge() {
  dgram::Challenge made{.nonce = number64()};
  for (std::byte& byte : made.cookie) byte = static_cast<std::byte>(random_());
  return made;
}

/// About a segment, with as much of its headers as fits a random limit.
std::vector<std::byte> DatagramMaker::error() {
  const DatagramSegment about = segment();
  std::vector<std::byte> headers(rdmap::segment_header_bytes(about.opcode, about.has_immediate));
  headers.resize(rdmap::encode_segment_headers(about, headers));
  const size_t immediate = about.has_immediate ? 8 : 0;
  const rdmap::ErrorReport report{.code = {.layer = static_cast<uint8_t>(below(4)),
                                           .type = static_cast<uint8_t>(below(16)),
                                           .code = static_cast<uint8_t>(below(256))},
                                  .headers = ConstBytes(headers).subspan(immediate),
                                  .segment_bytes = headers.size() - immediate + payload_.size()};
  const auto made = encoded(report, number(), 20 + below(80));
  return made.empty() ? encoded(report, number()) : made;
}

std::vector<std::byte> DatagramMaker::control() {
  if (chance(50)) return error();
  const auto type = chance(50) ? dgram::ControlType::challenge : dgram::ControlType::echo;
  return encoded(type, challenge(), number());
}

// --- RD.

dgram::RdHeader DatagramMaker::rd_header(RdKind kind) {
  dgram::RdHeader header{.kind = kind,
                         .flags = static_cast<uint8_t>(random_() & flags_allowed(kind)),
                         .window = static_cast<uint16_t>(number()),
                         .epoch = std::max(number(), uint32_t{1}),
                         .peer_epoch = std::max(number(), uint32_t{1}),
                         .peer_incarnation = number(),
                         .sequence = number(),
                         .acknowledged = number()};
  if (kind == RdKind::reset) header.window = 0;
  if (kind == RdKind::open) header.peer_epoch = 0;
  if (!has_sequence(kind)) header.sequence = 0;
  if (!has_acknowledged(kind)) header.acknowledged = 0;
  return header;
}

std::vector<std::byte> DatagramMaker::rd_content(RdKind kind) {
  std::vector<std::byte> content(256);
  switch (kind) {
    case RdKind::skip:
      content.resize(dgram::encode_rd_skip(
          {.kind = static_cast<dgram::MessageKind>(1 + below(4)), .number = number()}, content));
      return content;
    case RdKind::failure:
      content.resize(dgram::encode_rd_failure({.sink_stag = number(), .code = number()}, content));
      return content;
    case RdKind::acknowledgement:
      return bytes(8 * below(dgram::kRdMapWords + 1));
    case RdKind::refusal:
      content.resize(dgram::encode_rd_code(number(), content));
      return content;
    case RdKind::open:
      content.resize(dgram::encode_rd_proof(challenge(), content));
      return content;
    default:
      return {};
  }
}

std::vector<std::byte> DatagramMaker::rd_data() {
  const DatagramSegment inner = segment();
  std::vector<std::byte> body(dgram::kRdHeaderBytes);
  dgram::encode_rd_header(rd_header(RdKind::data), body);
  std::vector<std::byte> headers(rdmap::segment_header_bytes(inner.opcode, inner.has_immediate));
  headers.resize(rdmap::encode_segment_headers(inner, headers));
  body.insert(body.end(), headers.begin(), headers.end());
  return sealed({.datagram_class = dgram::DatagramClass::reliable,
                 .flags = rdmap::flags_of(inner),
                 .incarnation = number()},
                body, inner.payload);
}

std::vector<std::byte> DatagramMaker::reliable() {
  const auto kind = static_cast<RdKind>(1 + below(8));
  if (kind == RdKind::data) return rd_data();
  std::vector<std::byte> body(dgram::kRdHeaderBytes);
  dgram::encode_rd_header(rd_header(kind), body);
  return sealed({.datagram_class = dgram::DatagramClass::reliable, .incarnation = number()}, body,
                rd_content(kind));
}

std::vector<std::byte> DatagramMaker::valid() {
  switch (below(3)) {
    case 0:
      return encoded(segment(), number());
    case 1:
      return reliable();
    default:
      return control();
  }
}

// --- Damage.

void DatagramMaker::flip_bits(std::vector<std::byte>& datagram) {
  const uint64_t flips = 1 + below(3);
  for (uint64_t i = 0; i < flips; ++i) {
    datagram[below(datagram.size())] ^= static_cast<std::byte>(1 << below(8));
  }
}

void DatagramMaker::change_length(std::vector<std::byte>& datagram) {
  const size_t length = chance(80) ? below(datagram.size()) : datagram.size() + 1 + below(12);
  datagram.resize(std::max<size_t>(length, 1));
}

/// One word, or two with the same contents, as offsets of 64 bits have them at their end.
void DatagramMaker::replace_word(std::vector<std::byte>& datagram) {
  const size_t places = std::min<size_t>(datagram.size(), 72) / 2 - 1;
  const uint32_t value = number();
  const size_t count = chance(50) ? 4 : 8;
  for (size_t i = 0, at = 2 * below(places); i < count && at + i < datagram.size(); ++i) {
    datagram[at + i] = static_cast<std::byte>(value >> (24 - 8 * (i % 4)));
  }
}

std::vector<std::byte> DatagramMaker::damaged() {
  std::vector<std::byte> datagram = valid();
  switch (below(4)) {
    case 0:
      flip_bits(datagram);
      break;
    case 1:
      change_length(datagram);
      break;
    case 2:
      replace_word(datagram);
      break;
    default:
      std::ranges::copy(bytes(4), datagram.end() - 4);
      return datagram;  // a wrong CRC
  }
  if (datagram.size() < dgram::Envelope::kOverhead || chance(25)) return datagram;
  return sealed(std::move(datagram));
}

}  // namespace diwarp::test
