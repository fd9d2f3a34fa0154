// SPDX-License-Identifier: Apache-2.0

#include "dgram/rd_header.h"
#include "support/catch.h"
#include "wire/datagrams.h"
#include "wire/golden_datagram.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint32_t kIncarnation = 0xA1B2C3D4;

/// A whole datagram: prefix, RD header, what follows, CRC.
std::vector<std::byte> reliable(const dgram::RdHeader& header, uint32_t incarnation,
                                ConstBytes content, uint8_t flags = 0) {
  std::vector<std::byte> body(dgram::kRdHeaderBytes);
  dgram::encode_rd_header(header, body);
  return sealed({.datagram_class = dgram::DatagramClass::reliable,
                 .flags = flags,
                 .incarnation = incarnation},
                body, content);
}

dgram::ParsedRdHeader header_in(const dgram::OpenedEnvelope& envelope) {
  REQUIRE(envelope.labels.datagram_class == dgram::DatagramClass::reliable);
  const dgram::ParsedRdHeader parsed = dgram::parse_rd_header(envelope.body);
  REQUIRE(parsed.fault == dgram::RdHeaderFault::none);
  return parsed;
}

dgram::OpenedEnvelope envelope_of(const std::vector<std::byte>& datagram) {
  const dgram::OpenedEnvelope envelope = dgram::Envelope::open(datagram);
  REQUIRE(envelope.valid);
  return envelope;
}

// The ends of the association that the examples belong to, and their first numbers.
constexpr dgram::EndNames kHere{.incarnation = kIncarnation, .epoch = 3};
constexpr dgram::EndNames kThere{.incarnation = 2, .epoch = 2};
constexpr uint32_t kFirst = golden::kFirstSequence;
constexpr uint32_t kFirstOfPeer = golden::kFirstPeerSequence;

dgram::RdHeader from_here(dgram::RdKind kind, uint32_t sequence, uint32_t acknowledged) {
  return {.kind = kind,
          .window = 256,
          .epoch = kHere.epoch,
          .peer_epoch = kThere.epoch,
          .peer_incarnation = kThere.incarnation,
          .sequence = sequence,
          .acknowledged = acknowledged};
}
dgram::RdHeader from_there(dgram::RdKind kind, uint32_t sequence, uint32_t acknowledged) {
  return {.kind = kind,
          .window = 256,
          .epoch = kThere.epoch,
          .peer_epoch = kHere.epoch,
          .peer_incarnation = kHere.incarnation,
          .sequence = sequence,
          .acknowledged = acknowledged};
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
  const dgram::RdHeader header = from_here(dgram::RdKind::data, kFirst + 8, kFirstOfPeer + 3);
  CHECK(reliable(header, kIncarnation, content, rdmap::flags_of(segment)) ==
        golden::reliable_data());
}

TEST_CASE("parsing reliable data gives header and segment") {
  const auto datagram = golden::reliable_data();
  const dgram::OpenedEnvelope envelope = envelope_of(datagram);
  CHECK(envelope.labels.incarnation == kIncarnation);
  const dgram::ParsedRdHeader parsed = header_in(envelope);
  CHECK(parsed.header.kind == dgram::RdKind::data);
  CHECK(parsed.header.window == 256);
  CHECK(parsed.header.epoch == 3);
  CHECK(parsed.header.peer_epoch == 2);
  CHECK(parsed.header.peer_incarnation == 2);
  CHECK(parsed.header.sequence == kFirst + 8);
  CHECK(parsed.header.acknowledged == kFirstOfPeer + 3);
  const rdmap::ParsedSegment segment = rdmap::parse_segment(envelope.labels.flags, parsed.rest);
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
  dgram::RdHeader header = from_there(dgram::RdKind::acknowledgement, 0, kFirst + 5);
  header.window = 254;
  CHECK(reliable(header, 2, content) == golden::reliable_acknowledgement());
}

TEST_CASE("parsing an acknowledgement gives its map") {
  const auto datagram = golden::reliable_acknowledgement();
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.kind == dgram::RdKind::acknowledgement);
  CHECK(parsed.header.acknowledged == kFirst + 5);
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
  std::vector<std::byte> proof(dgram::kRdProofBytes);
  dgram::encode_rd_proof({.nonce = 0x0F1E2D3C4B5A6978}, proof);
  CHECK(reliable(header, kIncarnation, proof) == datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.kind == dgram::RdKind::open);
  CHECK(parsed.header.epoch == 3);
  CHECK(dgram::decode_rd_proof(parsed.rest).nonce == 0x0F1E2D3C4B5A6978);
  CHECK(dgram::decode_rd_proof(parsed.rest).cookie == dgram::Cookie{});
  // A Challenge, which may answer it, is shorter.
  CHECK(datagram.size() > dgram::kChallengeDatagramBytes);
}

TEST_CASE("a refusal is laid out as the format says and read back") {
  const auto datagram = golden::reliable_refusal();
  const dgram::RdHeader header = from_there(dgram::RdKind::refusal, kFirst + 9, kFirst + 8);
  std::vector<std::byte> code(dgram::kRdCodeBytes);
  dgram::encode_rd_code(0x11000000, code);
  CHECK(reliable(header, 2, code) == datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.sequence == kFirst + 9);
  CHECK(dgram::decode_rd_code(parsed.rest) == 0x11000000);
}

TEST_CASE("a skip is laid out as the format says and read back") {
  const auto datagram = golden::reliable_skip();
  const dgram::MessageName name{dgram::MessageKind::send, 5};
  std::vector<std::byte> content(dgram::kRdSkipBytes);
  dgram::encode_rd_skip(name, content);
  CHECK(reliable(from_here(dgram::RdKind::skip, kFirst + 9, kFirstOfPeer + 3), kIncarnation,
                 content) == datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(parsed.header.kind == dgram::RdKind::skip);
  CHECK(dgram::decode_rd_skip(parsed.rest) == name);
}

TEST_CASE("a failure is laid out as the format says and read back") {
  const auto datagram = golden::reliable_failure();
  std::vector<std::byte> content(dgram::kRdFailureBytes);
  dgram::encode_rd_failure({.sink_stag = 0xA0A1A2A3, .code = 0x01020000}, content);
  CHECK(reliable(from_there(dgram::RdKind::failure, kFirstOfPeer + 4, kFirst + 8), 2, content) ==
        datagram);
  const dgram::ParsedRdHeader parsed = header_in(envelope_of(datagram));
  CHECK(dgram::decode_rd_failure(parsed.rest).sink_stag == 0xA0A1A2A3);
  CHECK(dgram::decode_rd_failure(parsed.rest).code == 0x01020000);
}

TEST_CASE("a probe and the reset that answers it have one number") {
  const auto probe = golden::reliable_probe();
  CHECK(reliable(from_here(dgram::RdKind::probe, kFirst + 9, kFirstOfPeer + 4), kIncarnation, {}) ==
        probe);
  const auto reset = golden::reliable_reset();
  dgram::RdHeader header = from_there(dgram::RdKind::reset, kFirst + 9, 0);
  header.window = 0;
  CHECK(reliable(header, 2, {}) == reset);
  const dgram::ParsedRdHeader asked = header_in(envelope_of(probe));
  const dgram::ParsedRdHeader answered = header_in(envelope_of(reset));
  CHECK(asked.header.sequence == answered.header.sequence);
}

TEST_CASE("the first numbers of an association are those of a SipHash that is not the library's") {
  CHECK(dgram::first_sequence(kHere, kThere) == kFirst);
  CHECK(dgram::first_sequence(kThere, kHere) == kFirstOfPeer);
}
