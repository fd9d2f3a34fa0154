// SPDX-License-Identifier: Apache-2.0
#include "mpa/startup.h"

#include "base/random.h"
#include "support/catch.h"
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

/// Revision 2 with enhanced data, so many bytes of private data announced and there.
std::vector<std::byte> enhanced_frame(FrameKind kind, uint16_t announced, bool reject = false) {
  std::vector<std::byte> out(20 + announced, std::byte{0x21});
  encode({.kind = kind, .reject = reject, .revision = 2}, out);
  out[16] |= std::byte{0x10};
  out[18] = static_cast<std::byte>(announced >> 8);
  out[19] = static_cast<std::byte>(announced & 0xff);
  return out;
}

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

TEST_CASE("bytes after a frame are left alone") {
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

TEST_CASE("any revision is parsed") {
  for (uint8_t revision : {uint8_t{0}, uint8_t{2}, uint8_t{255}}) {
    auto frame = golden::mpa_request();
    frame[17] = std::byte{revision};
    const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
    REQUIRE(parsed.status == StartupStatus::ok);
    CHECK(parsed.frame.revision == revision);
    CHECK_FALSE(parsed.frame.enhanced);
  }
}

TEST_CASE("only revision 2 has enhanced data") {
  for (uint8_t revision : {uint8_t{0}, uint8_t{1}, uint8_t{3}, uint8_t{255}}) {
    auto frame = golden::mpa_request_enhanced();
    frame[17] = std::byte{revision};
    const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
    REQUIRE(parsed.status == StartupStatus::ok);
    CHECK_FALSE(parsed.frame.enhanced);
    CHECK(parsed.frame.private_data.size() == 6);
  }
}

TEST_CASE("enhanced data comes and goes with any combination of its flags and depths") {
  Random random(6581);
  for (unsigned flags = 0; flags < 16; ++flags) {
    for (uint16_t depth : std::initializer_list<uint16_t>{0, 1, 0x2aaa, 0x1555, 0x3ffe, 0x3fff}) {
      const Enhanced enhanced{
          .peer_to_peer = (flags & 8) != 0,
          .ready = {.send = (flags & 4) != 0, .write = (flags & 2) != 0, .read = (flags & 1) != 0},
          .ird = depth,
          .ord = static_cast<uint16_t>(random.below(0x4000))};
      const StartupFrame frame{
          .kind = FrameKind::reply, .revision = 2, .enhanced = enhanced, .private_data = {}};
      std::vector<std::byte> bytes(startup_bytes(frame));
      REQUIRE(encode(frame, bytes) == 24);
      const ParsedStartup parsed = parse_startup(bytes, FrameKind::reply);
      REQUIRE(parsed.status == StartupStatus::ok);
      CHECK(parsed.frame.enhanced == enhanced);
      CHECK(parsed.frame.private_data.empty());
      CHECK(parsed.consumed == 24);
    }
  }
}

TEST_CASE("enhanced data takes its four bytes from the 512 of private data") {
  CHECK(max_private_data(1) == 512);
  CHECK(max_private_data(2) == 508);
  const auto frame = enhanced_frame(FrameKind::request, 512);
  const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
  REQUIRE(parsed.status == StartupStatus::ok);
  CHECK(parsed.frame.private_data.size() == 508);
  CHECK(parsed.frame.private_data.data() == frame.data() + 24);
  CHECK(parse_startup(enhanced_frame(FrameKind::request, 513), FrameKind::request).status ==
        StartupStatus::bad_length);
}

TEST_CASE("an enhanced frame that comes byte by byte is incomplete until its last byte") {
  const auto frame = golden::mpa_reply_enhanced();
  for (size_t length = 0; length < frame.size(); ++length)
    CHECK(parse_startup(ConstBytes(frame).first(length), FrameKind::reply).status ==
          StartupStatus::incomplete);
  CHECK(parse_startup(frame, FrameKind::reply).status == StartupStatus::ok);
}

TEST_CASE("enhanced data that has no room in the private data is refused at once") {
  for (uint16_t announced : std::initializer_list<uint16_t>{0, 1, 2, 3}) {
    const auto request = enhanced_frame(FrameKind::request, announced);
    CHECK(parse_startup(ConstBytes(request).first(20), FrameKind::request).status ==
          StartupStatus::bad_enhanced);
    const auto reply = enhanced_frame(FrameKind::reply, announced);
    CHECK(parse_startup(reply, FrameKind::reply).status == StartupStatus::bad_enhanced);
  }
}

TEST_CASE("a reject may announce enhanced data and have none") {
  for (uint16_t announced : std::initializer_list<uint16_t>{0, 3}) {
    const auto reply = enhanced_frame(FrameKind::reply, announced, true);
    const ParsedStartup parsed = parse_startup(reply, FrameKind::reply);
    REQUIRE(parsed.status == StartupStatus::ok);
    CHECK(parsed.frame.reject);
    CHECK_FALSE(parsed.frame.enhanced);
    CHECK(parsed.frame.private_data.size() == announced);
  }
  const auto request = enhanced_frame(FrameKind::request, 0, true);
  CHECK(parse_startup(request, FrameKind::request).status == StartupStatus::bad_enhanced);
}

TEST_CASE("frames with random tails are checked within their bytes") {
  Random random(7);
  for (int round = 0; round < 100000; ++round) {
    auto frame = golden::mpa_request();
    frame.resize(16 + random.below(600));
    for (size_t i = 16; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(random.next());
    if (frame.size() > 18 && random.chance(0.9)) frame[18] &= std::byte{3};
    const ParsedStartup parsed = parse_startup(frame, FrameKind::request);
    if (parsed.status != StartupStatus::ok) continue;
    REQUIRE(parsed.consumed <= frame.size());
    const size_t enhanced = parsed.frame.enhanced ? 4 : 0;
    REQUIRE(parsed.frame.private_data.size() == parsed.consumed - 20 - enhanced);
    REQUIRE(parsed.frame.private_data.size() <= 512);
  }
}
