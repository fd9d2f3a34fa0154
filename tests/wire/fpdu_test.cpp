// SPDX-License-Identifier: Apache-2.0
#include "mpa/fpdu.h"

#include <algorithm>

#include "rdmap/stream_receiver.h"
#include "support/catch.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

std::vector<std::byte> encoded(const rdmap::StreamSegment& segment, bool with_crc = true) {
  const size_t ulpdu = 18 + segment.payload.size();
  std::vector<std::byte> out(mpa::fpdu_bytes(ulpdu));
  const Bytes bytes(out);
  mpa::encode_length(ulpdu, bytes);
  CHECK(rdmap::encode_header(segment, bytes.subspan(2)) == 18);
  std::copy(segment.payload.begin(), segment.payload.end(), out.begin() + 20);
  Crc32c crc;
  crc.update(bytes.first(2 + ulpdu));
  const Bytes trailer = bytes.subspan(2 + ulpdu);
  CHECK(mpa::encode_trailer(ulpdu, with_crc ? &crc : nullptr, trailer) == trailer.size());
  return out;
}

std::vector<std::byte> send_of(std::string_view payload, rdmap::StreamSegment segment) {
  const auto bytes = text(payload);
  segment.payload = bytes;
  return encoded(segment);
}

rdmap::StreamReceiver::Result received(rdmap::StreamReceiver& receiver,
                                       const std::vector<std::byte>& fpdu) {
  const mpa::Deframed deframed = mpa::Deframer(true, false).next(fpdu);
  REQUIRE(deframed.status == mpa::DeframeStatus::fpdu);
  CHECK(deframed.consumed == fpdu.size());
  return receiver.accept(deframed.ulpdu);
}

}  // namespace

TEST_CASE("FPDUs of Sends with 0 to 3 bytes of padding are laid out as the RFCs say") {
  CHECK(send_of("ping", {.last = true, .msn = 1}) == golden::fpdu_send());
  CHECK(send_of("", {.last = true, .msn = 1}) == golden::fpdu_empty_send());
  CHECK(send_of("ABC", {.last = true, .msn = 1}) == golden::fpdu_pad_1());
  CHECK(send_of("AB", {.opcode = rdmap::Opcode::send_solicited, .msn = 2}) ==
        golden::fpdu_solicited_pad_2());
  CHECK(send_of("A", {.last = false, .msn = 3}) == golden::fpdu_first_pad_3());
  CHECK(send_of("abcd", {.last = true, .msn = 3, .message_offset = 1}) == golden::fpdu_second());
}

TEST_CASE("with CRCs off the CRC field is there and zero") {
  auto expected = golden::fpdu_pad_1();
  std::fill(expected.end() - 4, expected.end(), std::byte{0});
  const auto payload = text("ABC");
  CHECK(encoded({.last = true, .msn = 1, .payload = payload}, false) == expected);
}

TEST_CASE("a stream of FPDUs gives the segments of three Sends") {
  rdmap::StreamReceiver receiver;

  const auto only = golden::fpdu_pad_1();
  const auto first_result = received(receiver, only);
  REQUIRE_FALSE(first_result.fault);
  CHECK(first_result.segment.last);
  CHECK(first_result.segment.opcode == rdmap::Opcode::send);
  CHECK(first_result.segment.msn == 1);
  CHECK(copy(first_result.segment.payload) == text("ABC"));
  CHECK(receiver.at_send_start());

  const auto solicited = golden::fpdu_solicited_pad_2();
  const auto second_result = received(receiver, solicited);
  REQUIRE_FALSE(second_result.fault);
  CHECK(second_result.segment.opcode == rdmap::Opcode::send_solicited);
  CHECK(second_result.segment.last);
  CHECK(second_result.segment.msn == 2);
  CHECK(copy(second_result.segment.payload) == text("AB"));

  const auto begin = golden::fpdu_first_pad_3();
  const auto third_result = received(receiver, begin);
  REQUIRE_FALSE(third_result.fault);
  CHECK_FALSE(third_result.segment.last);
  CHECK(third_result.segment.message_offset == 0);
  CHECK(copy(third_result.segment.payload) == text("A"));
  CHECK_FALSE(receiver.at_send_start());

  const auto end = golden::fpdu_second();
  const auto fourth_result = received(receiver, end);
  REQUIRE_FALSE(fourth_result.fault);
  CHECK(fourth_result.segment.last);
  CHECK(fourth_result.segment.msn == 3);
  CHECK(fourth_result.segment.message_offset == 1);
  CHECK(copy(fourth_result.segment.payload) == text("abcd"));
  CHECK(receiver.at_send_start());
}

TEST_CASE("markers in an FPDU are laid out as RFC 5044 says") {
  const auto plain = golden::fpdu_send();
  const ConstBytes ulpdu = ConstBytes(plain).subspan(2, 22);
  const auto marked = [&](uint64_t position) {
    std::vector<std::byte> out(mpa::marked_fpdu_bytes(22));
    out.resize(mpa::encode_marked_fpdu({&ulpdu, 1}, position, true, out));
    return out;
  };
  CHECK(marked(0) == golden::fpdu_marker_first());
  CHECK(marked(512) == golden::fpdu_marker_first());
  CHECK(marked(504) == golden::fpdu_marker_inside());
  CHECK(marked(488) == golden::fpdu_marker_before_crc());
  // A marker that is due behind the CRC belongs to the next FPDU.
  CHECK(marked(484) == plain);
}

TEST_CASE("FPDUs with markers are read as RFC 5044 lays them out") {
  const auto plain = golden::fpdu_send();
  const ConstBytes ulpdu = ConstBytes(plain).subspan(2, 22);
  const auto reads = [&](const std::vector<std::byte>& fpdu, uint64_t position) {
    mpa::Deframer deframer(true, true);
    deframer.step(position);
    const mpa::Deframed deframed = deframer.next(fpdu);
    REQUIRE(deframed.status == mpa::DeframeStatus::fpdu);
    return deframed.consumed == fpdu.size() && std::ranges::equal(deframed.ulpdu, ulpdu);
  };
  CHECK(reads(golden::fpdu_marker_first(), 0));
  CHECK(reads(golden::fpdu_marker_inside(), 504));
  CHECK(reads(golden::fpdu_marker_before_crc(), 488));
  CHECK(reads(plain, 484));
}
