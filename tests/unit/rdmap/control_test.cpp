// SPDX-License-Identifier: Apache-2.0
#include <initializer_list>

#include "rdmap/datagram.h"
#include "rdmap/terminate.h"
#include "stack/datagram.h"
#include "support/catch.h"
#include "unit/rdmap/altered.h"
#include "unit/rdmap/faults.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

const Segment kRecord{.msn = 5,
                      .payload = text("abcdefgh"),
                      .opcode = kWriteRecord,
                      .stag = 0x11223344,
                      .tagged_offset = 0x1000};
const Segment kRequest{
    .msn = 7, .q_key = 0x90919293, .opcode = kReadRequest, .read_length = 1000, .source_stag = 2};
const Segment kSend{.msn = 9, .payload = text("abcdefghijklmnop")};

/// A Challenge or an Echo: nonce and cookie.
Control challenge_message(uint8_t type, size_t bytes = 24) {
  return {.type = type, .content = std::vector<std::byte>(bytes, std::byte{0x5A})};
}

/// An Error whose bits say what they say, whatever follows.
Control error_message(std::string_view word_and_rest) {
  return {.type = kError, .content = hex(word_and_rest)};
}

Counter reason_of_control(const Control& control) { return reason_of(to_bytes(control)); }

/// The Error about a datagram, in at most `limit` bytes.
std::vector<std::byte> error_for(const std::vector<std::byte>& cause, size_t limit) {
  return encoded(report_of(fault::kTaggedInvalidStag, verdict_of(cause).segment), 1, limit);
}

}  // namespace

TEST_CASE("a control message has a type from 1 to 3") {
  for (const uint8_t type : std::initializer_list<uint8_t>{0, 4, 5, 127, 128, 255}) {
    CHECK(reason_of_control(challenge_message(type)) == Counter::drop_control);
  }
  CHECK(accepted(to_bytes(challenge_message(kChallenge))));
  CHECK(accepted(to_bytes(challenge_message(kEcho))));
}

TEST_CASE("a control message has no flags") {
  for (const uint8_t flags : std::initializer_list<uint8_t>{1, 2, 3, 4, 128}) {
    Control control = challenge_message(kEcho);
    control.flags = flags;
    CHECK(reason_of_control(control) == Counter::drop_flags);
  }
}

TEST_CASE("a control message's reserved bytes must be zero") {
  for (const uint32_t reserved : {1U, 0x80U, 0x100U, 0x8000U, 0x10000U, 0x800000U}) {
    Control control = challenge_message(kEcho);
    control.reserved = reserved;
    CHECK(reason_of_control(control) == Counter::drop_reserved);
  }
}

TEST_CASE("a control message without its whole header is truncated") {
  auto datagram = to_bytes(challenge_message(kEcho, 0));
  REQUIRE(datagram.size() == 16);
  while (datagram.size() > 12) {
    datagram = shortened(datagram);
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}

TEST_CASE("a nonce and a cookie have 24 bytes") {
  for (size_t bytes = 0; bytes < 40; ++bytes) {
    for (const uint8_t type : {kChallenge, kEcho}) {
      const auto datagram = to_bytes(challenge_message(type, bytes));
      if (bytes == 24) {
        CHECK(accepted(datagram));
      } else {
        CHECK(reason_of(datagram) ==
              (bytes < 24 ? Counter::drop_truncated : Counter::drop_control));
      }
    }
  }
}

TEST_CASE("an Error without headers has one word") {
  CHECK(accepted(to_bytes(error_message("11000000"))));
  CHECK(reason_of_control(error_message("1100 0000 00")) == Counter::drop_control);
  CHECK(reason_of_control(error_message("1100 0000 001e")) == Counter::drop_control);
  CHECK(reason_of_control(error_message("110000")) == Counter::drop_truncated);
  CHECK(reason_of_control(error_message("")) == Counter::drop_truncated);
}

TEST_CASE("an Error's reserved bits must be zero") {
  for (const char* word : {"11000001", "11001000", "11000080", "11000100", "11001fff"}) {
    CHECK(reason_of_control(error_message(word)) == Counter::drop_reserved);
  }
}

TEST_CASE("an Error's bits tell of nothing, of the DDP header, or of all headers") {
  const std::string header = "81 4c 11223344 0000000000001000";
  const std::string extension = "00000005 00000000 00000008";
  CHECK(accepted(to_bytes(error_message("1100 c000 0022" + header))));
  CHECK(accepted(to_bytes(error_message("1100 e000 0022" + header + extension))));
  for (const char* bits : {"2000", "4000", "6000", "8000", "a000"}) {
    CAPTURE(bits);
    CHECK(reason_of_control(error_message("1100" + std::string(bits))) == Counter::drop_control);
    CHECK(reason_of_control(error_message("1100" + std::string(bits) + "0022" + header)) ==
          Counter::drop_control);
  }
  CHECK(reason_of_control(error_message("1100 e000 0022" + header)) == Counter::drop_control);
  CHECK(reason_of_control(error_message("1100 c000 0022" + header + extension)) ==
        Counter::drop_control);
}

TEST_CASE("an Error that shows all headers shows just those that the opcode has") {
  const std::string record = "1100 e000 0030 81 4c 11223344 0000000000001000";
  const std::string extension = "00000005 00000000 00000008";
  REQUIRE(accepted(to_bytes(error_message(record + extension))));
  CHECK(reason_of_control(error_message(record + "00000005 00000000 000000")) ==
        Counter::drop_control);
  CHECK(reason_of_control(error_message(record + extension + "00")) == Counter::drop_control);
  // A Send has none but the DDP header; of an unknown opcode nobody knows.
  for (const char* control : {"43", "45", "4d", "4c"}) {
    CHECK(reason_of_control(error_message("1100 e000 0030 41" + std::string(control) +
                                          "00000000 00000000 00000001 00000000" + extension)) ==
          Counter::drop_control);
  }
}

TEST_CASE("an Error that announces headers has at least a DDP header of its form") {
  for (const char* whole : {"1100 c000 0022 81 4c 11223344 0000000000001000",
                            "1100 c000 0022 41 43 00000000 00000000 00000001 00000000"}) {
    auto datagram = to_bytes(error_message(whole));
    REQUIRE(accepted(datagram));
    while (datagram.size() > 20) {
      datagram = shortened(datagram);
      CHECK(reason_of(datagram) == Counter::drop_truncated);
    }
  }
}

TEST_CASE("an Error's segment is no shorter than the headers that are shown of it") {
  const std::string header = "81 4c 11223344 0000000000001000";
  CHECK(accepted(to_bytes(error_message("1100 c000 000e" + header))));
  CHECK(reason_of_control(error_message("1100 c000 000d" + header)) == Counter::drop_control);
  CHECK(reason_of_control(error_message("1100 c000 0000" + header)) == Counter::drop_control);
}

TEST_CASE("an Error is never longer than its limit, and says as much as fits") {
  for (const Segment& segment : {kRecord, kRequest, kSend}) {
    const auto cause = to_bytes(segment);
    const auto headers = header_bytes(segment);
    const size_t ddp_bytes = segment.opcode == kWriteRecord ? 14 : 18;
    for (size_t limit = 0; limit < 100; ++limit) {
      CAPTURE(+segment.opcode, limit);
      const auto error = error_for(cause, limit);
      REQUIRE(error.size() <= limit);
      REQUIRE(error.empty() == (limit < 20));
      if (error.empty()) continue;
      const Verdict verdict = verdict_of(error);
      REQUIRE_FALSE(verdict.drop);
      CHECK(verdict.error.code == fault::kTaggedInvalidStag);
      const size_t shown = limit >= 22 + headers.size() ? headers.size()
                           : limit >= 22 + ddp_bytes    ? ddp_bytes
                                                        : 0;
      const std::vector<std::byte> expected(headers.begin(),
                                            headers.begin() + static_cast<std::ptrdiff_t>(shown));
      CHECK(copy(verdict.error.headers) == expected);
      CHECK(verdict.error.segment_bytes ==
            (shown == 0 ? 0 : headers.size() + segment.payload.size()));
    }
  }
}

TEST_CASE("a Challenge is no longer than the shortest request that it answers") {
  static_assert(dgram::kChallengeDatagramBytes <= kRequestBytes);
  CHECK(to_bytes(challenge_message(kChallenge)).size() == dgram::kChallengeDatagramBytes);
}

TEST_CASE("the Error of this library is what the format says of the same cause") {
  for (const Segment& segment : {kRecord, kRequest, kSend}) {
    const auto headers = error_for(to_bytes(segment), 100);
    CHECK(headers == to_bytes(error_about(segment, 1, 1, 0)));
  }
}

TEST_CASE("an Error's headers are read only as far as they are known") {
  CHECK_FALSE(parse_error_headers({}));
  const auto read = [](std::string_view digits) {
    return parse_error_headers(hex(digits)).has_value();
  };
  CHECK(read("81 4c 11223344 0000000000001000"));
  CHECK_FALSE(read("82 4c 11223344 0000000000001000"));            // DDP version
  CHECK_FALSE(read("85 4c 11223344 0000000000001000"));            // reserved
  CHECK_FALSE(read("81 0c 11223344 0000000000001000"));            // RDMAP version
  CHECK_FALSE(read("81 40 11223344 0000000000001000"));            // opcode
  CHECK_FALSE(read("81 43 11223344 0000000000001000"));            // form
  CHECK_FALSE(read("41 43 00000000 00000001 00000001 00000000"));  // queue
  CHECK(read("41 43 00000000 00000000 00000001 00000000"));
}

TEST_CASE("a Read Request in an Error tells what was asked for") {
  const auto headers = header_bytes(kRequest);
  const auto segment = parse_error_headers(headers);
  REQUIRE(segment);
  CHECK(segment->opcode == Opcode::read_request);
  CHECK(segment->nonce == 0x90919293);
  CHECK(segment->msn == 7);
  CHECK(segment->request.length == 1000);
  CHECK(segment->request.source_stag == 2);
  CHECK(segment->headers.size() == 46);
  for (size_t bytes = 0; bytes < headers.size(); ++bytes) {
    const auto part = parse_error_headers(ConstBytes(headers).first(bytes));
    REQUIRE(part.has_value() == (bytes >= 18));
    if (!part) continue;
    CHECK(part->request.length == 0);
    CHECK(part->nonce == 0x90919293);
  }
}
