// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include <catch2/catch.hpp>

#include "base/crc32c.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::byte> encoded(const SendSegment& segment) {
  std::vector<std::byte> out(kSendOverhead + segment.payload.size());
  const size_t headers = encode_send_headers(segment, out);
  std::copy(segment.payload.begin(), segment.payload.end(), out.begin() + 26);
  CHECK(headers == 26);
  const size_t covered = out.size() - kDatagramCrcBytes;
  encode_datagram_crc(crc32c(ConstBytes(out).first(covered)), Bytes(out).subspan(covered));
  return out;
}

}  // namespace

TEST_CASE("a datagram Send is laid out as the format says") {
  const auto payload = text("hello, world");
  const SendSegment segment{.incarnation = 0xA1B2C3D4,
                            .last = true,
                            .q_key = 0x01020304,
                            .msn = 0x00ABCDEF,
                            .payload = payload};
  CHECK(encoded(segment) == golden::datagram_send());
}

TEST_CASE("a middle segment of a solicited datagram Send is laid out as the format says") {
  const auto payload = hex("deadbeef");
  const SendSegment segment{.incarnation = 0xA1B2C3D4,
                            .solicited = true,
                            .msn = 0xFFFFFFFF,
                            .message_offset = 0x10000,
                            .payload = payload};
  CHECK(encoded(segment) == golden::datagram_solicited());
}

TEST_CASE("an empty datagram Send is laid out as the format says") {
  CHECK(encoded({.incarnation = 1, .last = true, .msn = 7}) == golden::datagram_empty());
}

TEST_CASE("parsing a datagram Send gives its fields") {
  const auto datagram = golden::datagram_send();
  const ParsedDatagram parsed = parse_datagram(datagram);
  REQUIRE(parsed.valid);
  CHECK(parsed.segment.incarnation == 0xA1B2C3D4);
  CHECK_FALSE(parsed.segment.solicited);
  CHECK(parsed.segment.last);
  CHECK(parsed.segment.q_key == 0x01020304);
  CHECK(parsed.segment.msn == 0x00ABCDEF);
  CHECK(parsed.segment.message_offset == 0);
  CHECK(copy(parsed.segment.payload) == text("hello, world"));
  CHECK(parsed.segment.payload.data() == datagram.data() + 26);
}

TEST_CASE("parsing a middle segment of a solicited datagram Send gives its fields") {
  const auto datagram = golden::datagram_solicited();
  const ParsedDatagram parsed = parse_datagram(datagram);
  REQUIRE(parsed.valid);
  CHECK(parsed.segment.solicited);
  CHECK_FALSE(parsed.segment.last);
  CHECK(parsed.segment.q_key == 0);
  CHECK(parsed.segment.msn == 0xFFFFFFFF);
  CHECK(parsed.segment.message_offset == 0x10000);
  CHECK(copy(parsed.segment.payload) == hex("deadbeef"));
}

TEST_CASE("parsing an empty datagram Send gives its fields") {
  const auto datagram = golden::datagram_empty();
  const ParsedDatagram parsed = parse_datagram(datagram);
  REQUIRE(parsed.valid);
  CHECK(parsed.segment.incarnation == 1);
  CHECK(parsed.segment.last);
  CHECK(parsed.segment.msn == 7);
  CHECK(parsed.segment.payload.empty());
}

TEST_CASE("a CRC is stored with its low byte first, as RFC 3720 shows it") {
  const std::array<std::byte, 32> zeros{};
  std::vector<std::byte> stored(4);
  encode_datagram_crc(crc32c(zeros), stored);
  CHECK(stored == hex("aa36918a"));
}
