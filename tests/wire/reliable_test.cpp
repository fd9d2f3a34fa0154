// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "dgram/rd_header.h"
#include "wire/datagrams.h"
#include "wire/golden_datagram.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint32_t kIncarnation = 0xA1B2C3D4;

/// A whole datagram: prefix, RD header, what follows, CRC.
std::vector<std::byte> reliable(const dgram::RdHeader& header, uint32_t incarnation,
                                ConstBytes content, uint8_t flags = 0) {
  std::vector<std::byte> out(rdmap::kPrefixBytes + dgram::kRdHeaderBytes);
  const size_t prefix =
      rdmap::encode_prefix(rdmap::DatagramClass::reliable, flags, incarnation, out);
  dgram::encode_rd_header(header, Bytes(out).subspan(prefix));
  out.insert(out.end(), content.begin(), content.end());
  out.resize(out.size() + rdmap::kDatagramCrcBytes);
  return sealed(std::move(out));
}

dgram::ParsedRdHeader header_in(const rdmap::Envelope& envelope) {
  REQUIRE(envelope.datagram_class == rdmap::DatagramClass::reliable);
  const dgram::ParsedRdHeader parsed = dgram::parse_rd_header(envelope.body);
  REQUIRE(parsed.fault == dgram::RdHeaderFault::none);
  return parsed;
}

rdmap::Envelope envelope_of(const std::vector<std::byte>& datagram) {
  const rdmap::ParsedEnvelope parsed = rdmap::parse_envelope(datagram);
  REQUIRE(parsed.valid);
  return parsed.envelope;
}

}  // namespace

TEST_CASE("reliable data are laid out as the format says") {
  const auto payload = text("hi");
  const rdmap::DatagramSegment segment{.last = true,
                                       .has_immediate = true,
                                       .immediate = 0x0102030405060708,
                                       .msn = 5,
                                       .payload = payload};
  std::vector<std::byte> content(rdmap::segment_header_bytes(segment.opcode, true));
  rdmap::encode_segment_headers(segment, content);
  content.insert(content.end(), payload.begin(), payload.end());
  const dgram::RdHeader header{.window = 256,
                             .epoch = 3,
                             .peer_epoch = 2,
                             .peer_incarnation = 2,
                             .sequence = 9,
                             .acknowledged = 4};
  CHECK(reliable(header, kIncarnation, content, rdmap::flags_of(segment)) ==
        golden::reliable_data());
}

TEST_CASE("parsing reliable data gives header and segment") {
  const auto datagram = golden::reliable_data();
  const rdmap::Envelope envelope = envelope_of(datagram);
  CHECK(envelope.incarnation == kIncarnation);
  const dgram::ParsedRdHeader parsed = header_in(envelope);
  CHECK(parsed.header.kind == dgram::RdKind::data);
  CHECK(parsed.header.window == 256);
  CHECK(parsed.header.epoch == 3);
  CHECK(parsed.header.peer_epoch == 2);
  CHECK(parsed.header.peer_incarnation == 2);
  CHECK(parsed.header.sequence == 9);
  CHECK(parsed.header.acknowledged == 4);
  const rdmap::ParsedSegment segment = rdmap::parse_segment(envelope.flags, parsed.rest);
  REQUIRE(segment.valid);
  CHECK(segment.segment.immediate == 0x0102030405060708);
  CHECK(segment.segment.msn == 5);
  CHECK(copy(segment.segment.payload) == text("hi"));
}

TEST_CASE("an acknowledgement's map is laid out as the format says") {
  dgram::RdMap map;
  for (const size_t datagram : {9U, 11U, 71U}) map.set(datagram - 7);
  std::vector<std::byte> content(8 * map.count);
  dgram::encode_rd_map(map, content);
  const dgram::RdHeader header{.kind = dgram::RdKind::acknowledgement,
                             .window = 254,
                             .epoch = 2,
                             .peer_epoch = 3,
                             .peer_incarnation = kIncarnation,
                             .acknowledged = 6};
  CHECK(reliable(header, 2, content) == golden::reliable_acknowledgement());
}

TEST_CASE("parsing an acknowledgement gives its map") {
  const auto datagram = golden::reliable_acknowledgement();
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.kind == dgram::RdKind::acknowledgement);
  CHECK(parsed.header.acknowledged == 6);
  const dgram::RdMap map = dgram::decode_rd_map(parsed.rest);
  for (size_t number = 7; number < 140; ++number) {
    CAPTURE(number);
    CHECK(map.test(number - 7) == (number == 9 || number == 11 || number == 71));
  }
  CHECK(map.size() == 65);
}

TEST_CASE("an open is laid out as the format says and read back") {
  const auto datagram = golden::reliable_open();
  const dgram::RdHeader header{.kind = dgram::RdKind::open, .window = 256, .epoch = 3};
  CHECK(reliable(header, kIncarnation, std::vector<std::byte>(16)) == datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.kind == dgram::RdKind::open);
  CHECK(parsed.header.epoch == 3);
  CHECK(parsed.rest.size() == 16);
  // A Challenge, which may answer it, is shorter.
  CHECK(datagram.size() > rdmap::kCookieMessageBytes);
}

TEST_CASE("a refusal is laid out as the format says and read back") {
  const auto datagram = golden::reliable_refusal();
  const dgram::RdHeader header{.kind = dgram::RdKind::refusal,
                             .window = 256,
                             .epoch = 2,
                             .peer_epoch = 3,
                             .peer_incarnation = kIncarnation,
                             .sequence = 10,
                             .acknowledged = 9};
  std::vector<std::byte> code(dgram::kRdCodeBytes);
  dgram::encode_rd_code({.layer = 1, .type = 1, .code = 0}, code);
  CHECK(reliable(header, 2, code) == datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.sequence == 10);
  CHECK(dgram::decode_rd_code(parsed.rest) == dgram::RdCode{1, 1, 0});
}
