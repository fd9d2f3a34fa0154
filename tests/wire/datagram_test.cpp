// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include "rdmap/terminate.h"
#include "support/catch.h"
#include "wire/datagrams.h"
#include "wire/golden_datagram.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

constexpr uint32_t kIncarnation = 0xA1B2C3D4;

DatagramSegment segment_in(const std::vector<std::byte>& datagram) {
  const Verdict verdict = verdict_of(datagram);
  REQUIRE_FALSE(verdict.drop);
  REQUIRE(verdict.envelope.labels.datagram_class == dgram::DatagramClass::unreliable);
  return verdict.segment;
}

Verdict control_in(const std::vector<std::byte>& datagram, dgram::ControlType type) {
  const Verdict verdict = verdict_of(datagram);
  REQUIRE_FALSE(verdict.drop);
  REQUIRE(verdict.envelope.labels.datagram_class == dgram::DatagramClass::control);
  REQUIRE(verdict.control.type == type);
  return verdict;
}

ErrorReport error_in(const std::vector<std::byte>& datagram) {
  return control_in(datagram, dgram::ControlType::error).error;
}

dgram::Challenge challenge() {
  dgram::Challenge challenge{.nonce = 0x0F1E2D3C4B5A6978};
  for (size_t i = 0; i < challenge.cookie.size(); ++i)
    challenge.cookie[i] = static_cast<std::byte>(0x11 * i);
  return challenge;
}

}  // namespace

TEST_CASE("a datagram Send is laid out as the format says") {
  const auto payload = text("hello, world");
  const DatagramSegment segment{
      .last = true, .q_key = 0x01020304, .msn = 0x00ABCDEF, .payload = payload};
  CHECK(encoded(segment, kIncarnation) == golden::datagram_send());
}

TEST_CASE("a middle segment of a solicited datagram Send is laid out as the format says") {
  const auto payload = hex("deadbeef");
  const DatagramSegment segment{.opcode = Opcode::send_solicited,
                                .msn = 0xFFFFFFFF,
                                .message_offset = 0x10000,
                                .payload = payload};
  CHECK(encoded(segment, kIncarnation) == golden::datagram_solicited());
}

TEST_CASE("an empty datagram Send is laid out as the format says") {
  CHECK(encoded(DatagramSegment{.last = true, .msn = 7}, 1) == golden::datagram_empty());
}

TEST_CASE("a datagram Send with immediate data is laid out as the format says") {
  const auto payload = text("hi");
  const DatagramSegment segment{.last = true,
                                .has_immediate = true,
                                .immediate = 0x0102030405060708,
                                .msn = 9,
                                .payload = payload};
  CHECK(encoded(segment, kIncarnation) == golden::datagram_send_immediate());
}

TEST_CASE("datagram Sends with Invalidate are laid out as the format says") {
  const auto x = text("x");
  const auto y = text("y");
  CHECK(encoded(DatagramSegment{.opcode = Opcode::send_invalidate,
                                .last = true,
                                .invalidate_stag = 0x01020304,
                                .msn = 2,
                                .payload = x},
                kIncarnation) == golden::datagram_send_invalidate());
  CHECK(encoded(DatagramSegment{.opcode = Opcode::send_solicited_invalidate,
                                .has_immediate = true,
                                .immediate = ~uint64_t{0},
                                .invalidate_stag = 0x01020304,
                                .msn = 3,
                                .payload = y},
                kIncarnation) == golden::datagram_solicited_invalidate());
}

TEST_CASE("a Write-Record is laid out as the format says") {
  const auto payload = text("abcd");
  const DatagramSegment segment{.opcode = Opcode::write_record,
                                .has_immediate = true,
                                .immediate = 0x0102030405060708,
                                .msn = 0x00ABCDEF,
                                .message_offset = 8,
                                .stag = 0x11223344,
                                .tagged_offset = 0x1008,
                                .message_length = 16,
                                .record_solicited = true,
                                .payload = payload};
  CHECK(encoded(segment, kIncarnation) == golden::datagram_record());
}

TEST_CASE("an empty Write-Record is laid out as the format says") {
  const DatagramSegment segment{.opcode = Opcode::write_record,
                                .last = true,
                                .msn = 7,
                                .stag = 0x11223344,
                                .tagged_offset = 0x1000};
  CHECK(encoded(segment, 1) == golden::datagram_record_empty());
}

TEST_CASE("a datagram Read Request is laid out as the format says") {
  const DatagramSegment segment{.opcode = Opcode::read_request,
                                .last = true,
                                .nonce = 0x90919293,
                                .msn = 7,
                                .request = {.sink_stag = 0xA0A1A2A3,
                                            .sink_offset = 0x4041424344454647,
                                            .length = 0x40000,
                                            .source_stag = 0xC0C1C2C3,
                                            .source_offset = 0xD0D1D2D3D4D5D6D7}};
  CHECK(encoded(segment, kIncarnation) == golden::datagram_read_request());
}

TEST_CASE("a datagram Read Response is laid out as the format says") {
  const auto payload = text("ab");
  const DatagramSegment segment{.opcode = Opcode::read_response,
                                .stag = 0xA0A1A2A3,
                                .tagged_offset = 0x4041424344454649,
                                .payload = payload};
  CHECK(encoded(segment, 2) == golden::datagram_read_response());
}

TEST_CASE("the headers of a segment have as many bytes as are counted for them") {
  CHECK(segment_header_bytes(Opcode::send, false) == 18);
  CHECK(segment_header_bytes(Opcode::send, true) == 26);
  CHECK(segment_header_bytes(Opcode::write_record, false) == 26);
  CHECK(segment_header_bytes(Opcode::write_record, true) == 34);
  CHECK(segment_header_bytes(Opcode::read_request, false) == 46);
  CHECK(segment_header_bytes(Opcode::read_response, false) == 14);
}

TEST_CASE("a Challenge and its Echo are laid out as the format says") {
  CHECK(encoded(dgram::ControlType::challenge, challenge(), kIncarnation) ==
        golden::control_challenge());
  CHECK(encoded(dgram::ControlType::echo, challenge(), 1) == golden::control_echo());
  CHECK(golden::control_echo().size() == dgram::kChallengeDatagramBytes);
  static_assert(dgram::kChallengeDatagramBytes == 40);
}

TEST_CASE("an Error with all headers of its cause is laid out as the format says") {
  const auto cause = golden::datagram_record();
  const ErrorReport report = report_of(fault::kTaggedInvalidStag, segment_in(cause));
  CHECK(encoded(report, 2, cause.size() + 2) == golden::control_error_record());
}

TEST_CASE("an Error leaves out what follows the DDP header where it would outgrow its cause") {
  const auto cause = golden::datagram_read_request();
  const ErrorReport report = report_of(fault::kAccessRights, segment_in(cause));
  CHECK(encoded(report, 2, cause.size()) == golden::control_error_request());
}

TEST_CASE("an Error leaves out all headers where it would outgrow its cause") {
  const auto cause = golden::datagram_empty();
  const ErrorReport report = report_of(fault::kNoBuffer, segment_in(cause));
  CHECK(encoded(report, 2, cause.size()) == golden::control_error_bare());
  CHECK(golden::control_error_bare().size() ==
        dgram::Envelope::kOverhead + dgram::kControlHeaderBytes + kShortestErrorBytes);
}

TEST_CASE("parsing a datagram Send gives its fields") {
  const auto datagram = golden::datagram_send();
  const Verdict verdict = verdict_of(datagram);
  REQUIRE_FALSE(verdict.drop);
  CHECK(verdict.envelope.labels.datagram_class == dgram::DatagramClass::unreliable);
  CHECK(verdict.envelope.labels.flags == 0);
  CHECK(verdict.envelope.labels.incarnation == kIncarnation);
  const DatagramSegment& segment = verdict.segment;
  CHECK(segment.opcode == Opcode::send);
  CHECK_FALSE(segment.solicited());
  CHECK_FALSE(segment.has_immediate);
  CHECK(segment.last);
  CHECK(segment.q_key == 0x01020304);
  CHECK(segment.msn == 0x00ABCDEF);
  CHECK(segment.message_offset == 0);
  CHECK(copy(segment.payload) == text("hello, world"));
  CHECK(segment.payload.data() == datagram.data() + 26);
  CHECK(segment.headers.data() == datagram.data() + 8);
  CHECK(segment.headers.size() == 18);
}

TEST_CASE("parsing a middle segment of a solicited datagram Send gives its fields") {
  const auto datagram = golden::datagram_solicited();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.opcode == Opcode::send_solicited);
  CHECK(segment.solicited());
  CHECK_FALSE(segment.last);
  CHECK(segment.q_key == 0);
  CHECK(segment.msn == 0xFFFFFFFF);
  CHECK(segment.message_offset == 0x10000);
  CHECK(copy(segment.payload) == hex("deadbeef"));
}

TEST_CASE("parsing an empty datagram Send gives its fields") {
  const auto datagram = golden::datagram_empty();
  CHECK(verdict_of(datagram).envelope.labels.incarnation == 1);
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.last);
  CHECK(segment.msn == 7);
  CHECK(segment.payload.empty());
}

TEST_CASE("parsing a datagram Send with immediate data gives its fields") {
  const auto datagram = golden::datagram_send_immediate();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.has_immediate);
  CHECK(segment.immediate == 0x0102030405060708);
  CHECK_FALSE(segment.solicited());
  CHECK(segment.msn == 9);
  CHECK(copy(segment.payload) == text("hi"));
  CHECK(segment.headers.data() == datagram.data() + 16);
}

TEST_CASE("parsing a datagram Send with Invalidate gives its fields") {
  const auto plain = golden::datagram_send_invalidate();
  CHECK(segment_in(plain).opcode == Opcode::send_invalidate);
  CHECK(segment_in(plain).invalidate_stag == 0x01020304);
  CHECK(segment_in(plain).q_key == 0);
  const auto solicited = golden::datagram_solicited_invalidate();
  CHECK(segment_in(solicited).opcode == Opcode::send_solicited_invalidate);
  CHECK(segment_in(solicited).invalidate_stag == 0x01020304);
  CHECK(segment_in(solicited).immediate == ~uint64_t{0});
  CHECK(segment_in(solicited).solicited());
}

TEST_CASE("parsing a Write-Record gives its fields") {
  const auto datagram = golden::datagram_record();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.opcode == Opcode::write_record);
  CHECK_FALSE(segment.last);
  CHECK(segment.solicited());
  CHECK(segment.has_immediate);
  CHECK(segment.immediate == 0x0102030405060708);
  CHECK(segment.stag == 0x11223344);
  CHECK(segment.tagged_offset == 0x1008);
  CHECK(segment.msn == 0x00ABCDEF);
  CHECK(segment.message_offset == 8);
  CHECK(segment.message_length == 16);
  CHECK(copy(segment.payload) == text("abcd"));
  CHECK(segment.headers.data() == datagram.data() + 16);
  CHECK(segment.headers.size() == 26);
}

TEST_CASE("parsing an empty Write-Record gives its fields") {
  const auto datagram = golden::datagram_record_empty();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.last);
  CHECK_FALSE(segment.solicited());
  CHECK_FALSE(segment.has_immediate);
  CHECK(segment.tagged_offset == 0x1000);
  CHECK(segment.message_length == 0);
  CHECK(segment.payload.empty());
}

TEST_CASE("parsing a datagram Read Request gives its fields") {
  const auto datagram = golden::datagram_read_request();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.opcode == Opcode::read_request);
  CHECK(segment.last);
  CHECK(segment.nonce == 0x90919293);
  CHECK(segment.msn == 7);
  CHECK(segment.request.sink_stag == 0xA0A1A2A3);
  CHECK(segment.request.sink_offset == 0x4041424344454647);
  CHECK(segment.request.length == 0x40000);
  CHECK(segment.request.source_stag == 0xC0C1C2C3);
  CHECK(segment.request.source_offset == 0xD0D1D2D3D4D5D6D7);
  CHECK(segment.payload.empty());
  CHECK(segment.headers.size() == 46);
}

TEST_CASE("parsing a datagram Read Response gives its fields") {
  const auto datagram = golden::datagram_read_response();
  const DatagramSegment segment = segment_in(datagram);
  CHECK(segment.opcode == Opcode::read_response);
  CHECK_FALSE(segment.last);
  CHECK(segment.stag == 0xA0A1A2A3);
  CHECK(segment.tagged_offset == 0x4041424344454649);
  CHECK(copy(segment.payload) == text("ab"));
  CHECK(segment.headers.size() == 14);
}

TEST_CASE("parsing a Challenge and an Echo gives nonce and cookie") {
  const auto sent = golden::control_challenge();
  const Verdict verdict = control_in(sent, dgram::ControlType::challenge);
  CHECK(verdict.envelope.labels.incarnation == kIncarnation);
  CHECK(verdict.control.challenge.nonce == challenge().nonce);
  CHECK(verdict.control.challenge.cookie == challenge().cookie);
  const auto answer = golden::control_echo();
  const Verdict echo = control_in(answer, dgram::ControlType::echo);
  CHECK(echo.control.challenge.nonce == challenge().nonce);
  CHECK(echo.control.challenge.cookie == challenge().cookie);
}

TEST_CASE("parsing an Error gives its code and the headers of its cause") {
  const auto datagram = golden::control_error_record();
  const ErrorReport error = error_in(datagram);
  CHECK(error.code == fault::kTaggedInvalidStag);
  CHECK(error.segment_bytes == 30);
  const auto segment = parse_error_headers(error.headers);
  REQUIRE(segment);
  CHECK(segment->opcode == Opcode::write_record);
  CHECK(segment->stag == 0x11223344);
  CHECK(segment->tagged_offset == 0x1008);
  CHECK(segment->msn == 0x00ABCDEF);
  CHECK(segment->message_offset == 8);
  CHECK(segment->message_length == 16);
}

TEST_CASE("parsing an Error with a DDP header alone gives what that tells") {
  const auto datagram = golden::control_error_request();
  const ErrorReport error = error_in(datagram);
  CHECK(error.code == fault::kAccessRights);
  CHECK(error.segment_bytes == 46);
  const auto segment = parse_error_headers(error.headers);
  REQUIRE(segment);
  CHECK(segment->opcode == Opcode::read_request);
  CHECK(segment->nonce == 0x90919293);
  CHECK(segment->msn == 7);
  CHECK(segment->request.sink_stag == 0);
}

TEST_CASE("parsing an Error without headers gives its code") {
  const auto datagram = golden::control_error_bare();
  const ErrorReport error = error_in(datagram);
  CHECK(error.code == fault::kNoBuffer);
  CHECK(error.headers.empty());
  CHECK(error.segment_bytes == 0);
  CHECK_FALSE(parse_error_headers(error.headers));
}

TEST_CASE("a CRC is stored with its low byte first, as RFC 3720 shows it") {
  const std::array<std::byte, 32> zeros{};
  std::vector<std::byte> stored(4);
  store_crc32c(stored.data(), crc32c(zeros));
  CHECK(stored == hex("aa36918a"));
}
