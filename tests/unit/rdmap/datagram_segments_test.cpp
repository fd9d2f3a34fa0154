// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "rdmap/datagram.h"
#include "stack/datagram.h"
#include "support/catch.h"
#include "unit/rdmap/altered.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

constexpr uint64_t kTop = std::numeric_limits<uint64_t>::max();

Counter reason_of_segment(const Segment& segment) { return reason_of(to_bytes(segment)); }
bool accepted_segment(const Segment& segment) { return accepted(to_bytes(segment)); }

/// The middle third of a Write-Record of 12 bytes at 0x1000.
Segment record() {
  return {.msn = 5,
          .offset = 4,
          .last = false,
          .payload = text("abcd"),
          .opcode = kWriteRecord,
          .stag = 0x11223344,
          .tagged_offset = 0x1004,
          .message_length = 12};
}

/// A part of a message of so many bytes, at its base.
Segment record(uint32_t offset, size_t payload, uint32_t length, bool last, uint64_t base = 0) {
  Segment segment = record();
  segment.offset = offset;
  segment.payload.resize(payload);
  segment.message_length = length;
  segment.last = last;
  segment.tagged_offset = base + offset;
  return segment;
}

Segment request() {
  return {.msn = 7,
          .opcode = kReadRequest,
          .sink_stag = 1,
          .read_length = 1000,
          .source_stag = 2,
          .source_offset = 3};
}

Segment response(uint64_t offset, size_t payload) {
  return {.payload = std::vector<std::byte>(payload),
          .opcode = kReadResponse,
          .stag = 1,
          .tagged_offset = offset};
}

}  // namespace

TEST_CASE("Write-Records and Read Responses are tagged, Read Requests are not") {
  for (Segment segment : {record(), request(), response(0, 8)}) {
    REQUIRE(accepted_segment(segment));
    segment.wrong_form = true;
    CHECK(reason_of_segment(segment) == Counter::drop_opcode);
  }
}

TEST_CASE("a Write-Record without its whole extension is truncated") {
  Segment empty = record(0, 0, 0, true);
  auto datagram = to_bytes(empty);
  REQUIRE(accepted(datagram));
  while (datagram.size() > 12) {
    datagram = shortened(datagram);
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}

TEST_CASE("a Write-Record may come with immediate data and with a solicited event") {
  Segment segment = record();
  REQUIRE(accepted_segment(segment));
  segment.immediate = 99;
  CHECK(verdict_of(to_bytes(segment)).segment.immediate == 99);
  segment.solicited = true;
  CHECK(verdict_of(to_bytes(segment)).segment.solicited());
  segment.immediate.reset();
  CHECK(verdict_of(to_bytes(segment)).segment.solicited());
  CHECK_FALSE(verdict_of(to_bytes(segment)).segment.has_immediate);
}

TEST_CASE("no segment of a Write-Record reaches beyond its message") {
  CHECK(accepted_segment(record(8, 4, 12, true)));
  CHECK(reason_of_segment(record(9, 4, 12, true)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(9, 4, 12, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(12, 1, 12, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(13, 0, 12, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(0xFFFFFFFC, 4, 12, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(0xFFFFFFFF, 13, 12, true)) == Counter::drop_oversized);
}

TEST_CASE("no Write-Record is longer than the longest message") {
  const auto longest = static_cast<uint32_t>(kMaxMessage);
  CHECK(accepted_segment(record(0, 4, longest, false)));
  CHECK(accepted_segment(record(longest - 4, 4, longest, true)));
  CHECK(reason_of_segment(record(0, 4, longest + 1, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(0, 4, 0xFFFFFFFF, false)) == Counter::drop_oversized);
  CHECK(reason_of_segment(record(0xFFFFFFFB, 4, 0xFFFFFFFF, true)) == Counter::drop_oversized);
}

TEST_CASE("a Write-Record has L exactly where its message ends") {
  CHECK(reason_of_segment(record(4, 4, 12, true)) == Counter::drop_contradiction);
  CHECK(reason_of_segment(record(8, 4, 12, false)) == Counter::drop_contradiction);
  CHECK(reason_of_segment(record(0, 0, 0, false)) == Counter::drop_contradiction);
  CHECK(accepted_segment(record(12, 0, 12, true)));
  CHECK(reason_of_segment(record(12, 0, 12, false)) == Counter::drop_contradiction);
  CHECK(accepted_segment(record(4, 0, 12, false)));
  CHECK(reason_of_segment(record(4, 0, 12, true)) == Counter::drop_contradiction);
}

TEST_CASE("a Write-Record's message begins at no offset below zero") {
  Segment segment = record();
  segment.tagged_offset = 4;
  CHECK(accepted_segment(segment));
  segment.tagged_offset = 3;
  CHECK(reason_of_segment(segment) == Counter::drop_bounds);
  segment.tagged_offset = 0;
  CHECK(reason_of_segment(segment) == Counter::drop_bounds);
  // One that would begin so far below zero that it ends there.
  Segment end = record(12, 0, 12, true);
  end.tagged_offset = 0;
  CHECK(reason_of_segment(end) == Counter::drop_bounds);
}

TEST_CASE("a Write-Record's message ends at the last offset or before") {
  CHECK(accepted_segment(record(4, 4, 12, false, kTop - 11)));
  CHECK(accepted_segment(record(0, 4, 12, false, kTop - 11)));
  CHECK(reason_of_segment(record(0, 4, 12, false, kTop - 10)) == Counter::drop_bounds);
  CHECK(reason_of_segment(record(0, 0, 12, false, kTop)) == Counter::drop_bounds);
  CHECK(accepted_segment(record(0, 0, 0, true, kTop)));
}

TEST_CASE("a Read Request has exactly its own bytes") {
  const auto datagram = to_bytes(request());
  REQUIRE(datagram.size() == 58);
  REQUIRE(accepted(datagram));
  CHECK(reason_of(extended(datagram)) == Counter::drop_oversized);
  for (auto shorter = datagram; shorter.size() > 12;) {
    shorter = shortened(shorter);
    CHECK(reason_of(shorter) == Counter::drop_truncated);
  }
}

TEST_CASE("a Read Request is one segment") {
  Segment segment = request();
  segment.last = false;
  CHECK(reason_of_segment(segment) == Counter::drop_contradiction);
  segment.last = true;
  segment.offset = 1;
  CHECK(reason_of_segment(segment) == Counter::drop_oversized);
  segment.offset = 0xFFFFFFFF;
  CHECK(reason_of_segment(segment) == Counter::drop_oversized);
}

TEST_CASE("a Read Request goes to queue number 1") {
  for (const uint32_t difference : {1U, 2U, 0xFFFFFFFFU}) {  // the last: queue 0
    Segment segment = request();
    segment.queue_number = difference;
    CHECK(reason_of_segment(segment) == Counter::drop_queue_number);
  }
}

TEST_CASE("a Read Request has any nonce") {
  Segment segment = request();
  for (const uint32_t nonce : {0U, 1U, 0x80000000U, 0xFFFFFFFFU}) {
    segment.q_key = nonce;
    CHECK(verdict_of(to_bytes(segment)).segment.nonce == nonce);
    CHECK(accepted_segment(segment));
  }
}

TEST_CASE("a Read Request asks for 256 KiB at most") {
  Segment segment = request();
  for (const uint32_t length : {0U, 1U, 0x40000U}) {
    segment.read_length = length;
    CHECK(accepted_segment(segment));
  }
  for (const uint32_t length : {0x40001U, 0x80000000U, 0xFFFFFFFFU}) {
    segment.read_length = length;
    CHECK(reason_of_segment(segment) == Counter::drop_oversized);
  }
}

TEST_CASE("a Read Request's sink ends at the last offset or before") {
  Segment segment = request();
  segment.sink_offset = kTop - 999;
  CHECK(accepted_segment(segment));
  segment.sink_offset = kTop - 998;
  CHECK(reason_of_segment(segment) == Counter::drop_bounds);
  segment.read_length = 0;
  segment.sink_offset = kTop;
  CHECK(accepted_segment(segment));
}

TEST_CASE("where a Read Request's source ends is for its region to check") {
  Segment segment = request();
  segment.source_offset = kTop;
  CHECK(accepted_segment(segment));
}

TEST_CASE("Reads have no flags") {
  for (const bool solicited : {false, true}) {
    for (Segment segment : {request(), response(0, 8)}) {
      segment.solicited = solicited;
      if (!solicited) segment.immediate = 1;
      CHECK(reason_of_segment(segment) == Counter::drop_flags);
    }
  }
}

TEST_CASE("a Read Response ends at the last offset or before") {
  CHECK(accepted_segment(response(0, 0)));
  CHECK(accepted_segment(response(kTop, 0)));
  CHECK(accepted_segment(response(kTop, 1)));
  CHECK(reason_of_segment(response(kTop, 2)) == Counter::drop_bounds);
  CHECK(reason_of_segment(response(kTop - 999, 1001)) == Counter::drop_bounds);
}

TEST_CASE("a Read Response without its whole header is truncated") {
  auto datagram = to_bytes(response(0, 0));
  REQUIRE(datagram.size() == 26);
  while (datagram.size() > 12) {
    datagram = shortened(datagram);
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}
