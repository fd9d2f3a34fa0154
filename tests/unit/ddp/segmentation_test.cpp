// SPDX-License-Identifier: Apache-2.0
#include "ddp/segmentation.h"

#include <vector>

#include "ddp/header.h"
#include "support/catch.h"

using namespace diwarp::ddp;

namespace {

// Ethernet's TCP segments of 1,460 bytes carry ULPDUs of 1,454 (RFC 5044 section 4.5).
constexpr size_t kMulpdu = 1454;

std::vector<Segment> cut(uint64_t message, size_t max_payload) {
  std::vector<Segment> all;
  uint64_t offset = 0;
  do {
    all.push_back(next_segment(message, offset, max_payload));
    offset = all.back().end();
  } while (!all.back().last);
  return all;
}

Header header_of(const Segment& segment, uint64_t base = 0) {
  Header header;
  segment.set_place(header, base);
  return header;
}

}  // namespace

TEST_CASE("A segment's payload is what the MULPDU leaves beside its header") {
  // RFC 5041 figures 3 and 5: 14 bytes and 18.
  CHECK(max_payload(kMulpdu, kTaggedHeaderBytes) == 1440);
  CHECK(max_payload(kMulpdu, kUntaggedHeaderBytes) == 1436);
  // The least that MPA offers.
  CHECK(max_payload(128, kUntaggedHeaderBytes) == 110);
}

TEST_CASE("A lower layer that carries hardly a header still carries a byte of payload") {
  CHECK(max_payload(kUntaggedHeaderBytes + 1, kUntaggedHeaderBytes) == 1);
  CHECK(max_payload(kUntaggedHeaderBytes, kUntaggedHeaderBytes) == 1);
  CHECK(max_payload(1, kUntaggedHeaderBytes) == 1);
}

TEST_CASE("An untagged message is cut in order, each segment with its MO, the last with L") {
  const std::vector<Segment> segments = cut(3000, max_payload(kMulpdu, kUntaggedHeaderBytes));
  REQUIRE(segments.size() == 3);
  CHECK(segments[0].length == 1436);
  CHECK(segments[1].length == 1436);
  CHECK(segments[2].length == 128);
  // RFC 5041 section 4.3: MO is relative to the message's first byte, which has 0.
  CHECK(header_of(segments[0]).message_offset == 0);
  CHECK(header_of(segments[1]).message_offset == 1436);
  CHECK(header_of(segments[2]).message_offset == 2872);
  CHECK_FALSE(header_of(segments[0]).last);
  CHECK_FALSE(header_of(segments[1]).last);
  CHECK(header_of(segments[2]).last);
}

TEST_CASE("A tagged message is cut in order, each segment with the TO of its own first byte") {
  constexpr uint64_t kBase = 0x1'0000'0000 - 1440;
  const std::vector<Segment> segments = cut(2881, max_payload(kMulpdu, kTaggedHeaderBytes));
  REQUIRE(segments.size() == 3);
  CHECK(header_of(segments[0], kBase).tagged_offset == 0xFFFF'FA60);
  CHECK(header_of(segments[1], kBase).tagged_offset == 0x1'0000'0000);
  CHECK(header_of(segments[2], kBase).tagged_offset == 0x1'0000'05A0);
  CHECK(segments[2].length == 1);
  CHECK(header_of(segments[2], kBase).last);
}

TEST_CASE("A message of exactly so many segments has no empty one after them") {
  const std::vector<Segment> segments = cut(2 * 1436, 1436);
  REQUIRE(segments.size() == 2);
  CHECK_FALSE(segments[0].last);
  CHECK(segments[1].last);
  CHECK(segments[1].length == 1436);
}

TEST_CASE("A message of no bytes is one segment of none, with L") {
  const std::vector<Segment> segments = cut(0, 1436);
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].length == 0);
  CHECK(header_of(segments[0], 7).last);
  CHECK(header_of(segments[0], 7).message_offset == 0);
  CHECK(header_of(segments[0], 7).tagged_offset == 7);
}

TEST_CASE("A message may be cut on with another MULPDU, without a gap") {
  const Segment first = next_segment(5000, 0, 1436);
  const Segment second = next_segment(5000, first.end(), 500);
  const Segment third = next_segment(5000, second.end(), 9000);
  CHECK(second.offset == 1436);
  CHECK(second.length == 500);
  CHECK_FALSE(second.last);
  CHECK(third.offset == 1936);
  CHECK(third.length == 3064);
  CHECK(third.last);
}

TEST_CASE("A segment that is sent again is the one that was cut") {
  for (const Segment& segment : cut(3000, 1436)) {
    const Segment again = segment_of(3000, segment.offset, segment.length);
    CHECK(again.end() == segment.end());
    CHECK(again.last == segment.last);
  }
}

TEST_CASE("The longest message is cut to its end") {
  constexpr uint64_t kLongest = uint64_t{1} << 30;
  const Segment last = next_segment(kLongest, kLongest - 4, 64000);
  CHECK(last.length == 4);
  CHECK(last.last);
  CHECK(header_of(last).message_offset == 0x3FFF'FFFC);
  CHECK(header_of(last, UINT64_MAX - kLongest + 1).tagged_offset == 0xFFFF'FFFF'FFFF'FFFC);
}
