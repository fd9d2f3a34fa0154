// SPDX-License-Identifier: Apache-2.0
#include "mpa/startup.h"

#include <catch2/catch.hpp>

#include "base/random.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::mpa;
using namespace diwarp::test;

namespace {

std::vector<std::byte> request_with(size_t private_data) {
  std::vector<std::byte> data(private_data, std::byte{0x5A});
  std::vector<std::byte> out(kStartupHeaderBytes + private_data);
  encode({.kind = FrameKind::request, .private_data = data}, out);
  return out;
}

StartupFrame request() { return {.kind = FrameKind::request}; }
StartupFrame reply() { return {.kind = FrameKind::reply}; }

}  // namespace

TEST_CASE("a frame that comes byte by byte is incomplete until its last byte") {
  const auto frame = golden::mpa_request();
  for (size_t length = 0; length < frame.size(); ++length) {
    const ParsedStartup parsed = parse_startup(ConstBytes(frame).first(length), FrameKind::request);
    CHECK(parsed.status == StartupStatus::incomplete);
    CHECK(parsed.consumed == 0);
  }
  CHECK(parse_startup(frame, FrameKind::request).status == StartupStatus::ok);
}

TEST_CASE("a wrong byte of the key is told at once") {
  for (size_t wrong = 0; wrong < 16; ++wrong) {
    auto frame = golden::mpa_reject();
    frame[wrong] ^= std::byte{1};
    for (size_t length = 0; length <= wrong; ++length) {
      CHECK(parse_startup(ConstBytes(frame).first(length), FrameKind::reply).status ==
            StartupStatus::incomplete);
    }
    for (size_t length = wrong + 1; length <= frame.size(); ++length) {
      CHECK(parse_startup(ConstBytes(frame).first(length), FrameKind::reply).status ==
            StartupStatus::bad_key);
    }
  }
}

TEST_CASE("the other kind of frame is not the expected one") {
  const auto request_frame = golden::mpa_request();
  CHECK(parse_startup(request_frame, FrameKind::reply).status == StartupStatus::bad_key);
  const auto reply_frame = golden::mpa_reply();
  CHECK(parse_startup(reply_frame, FrameKind::request).status == StartupStatus::bad_key);
  // "MPA ID Re" is common to both; then they part.
  CHECK(parse_startup(ConstBytes(reply_frame).first(9), FrameKind::request).status ==
        StartupStatus::incomplete);
  CHECK(parse_startup(ConstBytes(reply_frame).first(10), FrameKind::request).status ==
        StartupStatus::bad_key);
}

TEST_CASE("private data may have 512 bytes") {
  const auto frame = request_with(512);
  const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
  REQUIRE(parsed.status == StartupStatus::ok);
  CHECK(parsed.frame.private_data.size() == 512);
  CHECK(parsed.frame.private_data.data() == frame.data() + 20);
  CHECK(parsed.consumed == 532);
}

TEST_CASE("more than 512 bytes of private data are refused as soon as they are announced") {
  for (const char* length : {"0201", "0300", "ffff"}) {
    auto frame = golden::mpa_request();
    const auto bytes = hex(length);
    frame[18] = bytes[0];
    frame[19] = bytes[1];
    CHECK(parse_startup(ConstBytes(frame).first(19), FrameKind::request).status ==
          StartupStatus::incomplete);
    CHECK(parse_startup(ConstBytes(frame).first(20), FrameKind::request).status ==
          StartupStatus::bad_length);
  }
}

TEST_CASE("what follows a frame is left alone") {
  auto stream = golden::mpa_reject();
  const size_t size = stream.size();
  const auto fpdu = golden::fpdu_send();
  stream.insert(stream.end(), fpdu.begin(), fpdu.end());
  const ParsedStartup parsed = parse_startup(stream, FrameKind::reply);
  REQUIRE(parsed.status == StartupStatus::ok);
  CHECK(parsed.consumed == size);
  CHECK(parsed.frame.private_data.size() == 2);
}

TEST_CASE("reserved flags are not looked at") {
  auto frame = golden::mpa_request();
  frame[16] |= std::byte{0x1F};
  const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
  REQUIRE(parsed.status == StartupStatus::ok);
  CHECK(parsed.frame.crc);
  CHECK_FALSE(parsed.frame.markers);
  CHECK_FALSE(parsed.frame.reject);
}

TEST_CASE("any revision is parsed and only revision 1 is agreed to") {
  for (uint8_t revision : {uint8_t{0}, uint8_t{2}, uint8_t{255}}) {
    auto frame = golden::mpa_request();
    frame[17] = std::byte{revision};
    const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
    REQUIRE(parsed.status == StartupStatus::ok);
    CHECK(parsed.frame.revision == revision);
    CHECK(judge_request(parsed.frame, true).fault == AgreementFault::revision);

    StartupFrame answer = reply();
    answer.revision = revision;
    CHECK(judge_reply(answer, true).fault == AgreementFault::revision);
  }
  CHECK(judge_request(request(), true).fault == AgreementFault::none);
  CHECK(judge_reply(reply(), true).fault == AgreementFault::none);
}

TEST_CASE("a peer that wants markers is not agreed with") {
  StartupFrame asks = request();
  asks.markers = true;
  CHECK(judge_request(asks, true).fault == AgreementFault::markers);
  StartupFrame answers = reply();
  answers.markers = true;
  CHECK(judge_reply(answers, true).fault == AgreementFault::markers);
}

TEST_CASE("a rejecting reply is a rejection whatever else it wants") {
  StartupFrame answers = reply();
  answers.reject = true;
  CHECK(judge_reply(answers, true).fault == AgreementFault::rejected);
  answers.markers = true;
  CHECK(judge_reply(answers, true).fault == AgreementFault::rejected);
  answers.revision = 2;
  CHECK(judge_reply(answers, true).fault == AgreementFault::revision);
}

TEST_CASE("the reject bit means nothing in a request") {
  StartupFrame asks = request();
  asks.reject = true;
  CHECK(judge_request(asks, true).fault == AgreementFault::none);
}

TEST_CASE("CRCs are used if either side asks") {
  for (bool peer : {false, true}) {
    for (bool local : {false, true}) {
      StartupFrame asks = request();
      asks.crc = peer;
      CHECK(judge_request(asks, local).agreement.crc == (peer || local));
      StartupFrame answers = reply();
      answers.crc = peer;
      CHECK(judge_reply(answers, local).agreement.crc == (peer || local));
    }
  }
}

TEST_CASE("frames with random tails are judged within their bytes") {
  Random random(7);
  for (int round = 0; round < 100000; ++round) {
    auto frame = golden::mpa_request();
    frame.resize(16 + random.below(600));
    for (size_t i = 16; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(random.next());
    if (frame.size() > 18 && random.chance(0.9)) frame[18] &= std::byte{3};
    const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
    if (parsed.status != StartupStatus::ok) continue;
    REQUIRE(parsed.consumed <= frame.size());
    REQUIRE(parsed.frame.private_data.size() == parsed.consumed - 20);
    REQUIRE(parsed.frame.private_data.size() <= 512);
  }
}
