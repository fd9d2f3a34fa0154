// SPDX-License-Identifier: Apache-2.0
#include "mpa/startup.h"

#include "support/catch.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::mpa;
using namespace diwarp::test;

namespace {

std::vector<std::byte> encoded(const StartupFrame& frame) {
  std::vector<std::byte> out(startup_bytes(frame));
  CHECK(encode(frame, out) == out.size());
  return out;
}

}  // namespace

TEST_CASE("an MPA Request is laid out as RFC 5044 says") {
  const auto hello = text("hello");
  CHECK(encoded({.kind = FrameKind::request, .crc = true, .private_data = hello}) ==
        golden::mpa_request());
}

TEST_CASE("MPA Replies that accept and reject are laid out as RFC 5044 says") {
  CHECK(encoded({.kind = FrameKind::reply, .crc = false}) == golden::mpa_reply());
  const auto no = text("no");
  CHECK(encoded({.kind = FrameKind::reply, .crc = true, .reject = true, .private_data = no}) ==
        golden::mpa_reject());
}

TEST_CASE("the flags of a start-up frame have their bits") {
  CHECK(encoded({.kind = FrameKind::reply, .markers = true, .crc = false})[16] == std::byte{0x80});
  CHECK(encoded({.kind = FrameKind::reply, .crc = true})[16] == std::byte{0x40});
  CHECK(encoded({.kind = FrameKind::reply, .crc = false, .reject = true})[16] == std::byte{0x20});
}

TEST_CASE("parsing an MPA Request gives its fields") {
  const auto bytes = golden::mpa_request();
  const ParsedStartup parsed = parse_startup(bytes, FrameKind::request);
  REQUIRE(parsed.status == StartupStatus::ok);
  CHECK(parsed.frame.kind == FrameKind::request);
  CHECK(parsed.frame.crc);
  CHECK_FALSE(parsed.frame.markers);
  CHECK_FALSE(parsed.frame.reject);
  CHECK(parsed.frame.revision == 1);
  CHECK(copy(parsed.frame.private_data) == text("hello"));
  CHECK(parsed.consumed == 25);
}

TEST_CASE("parsing MPA Replies gives their fields") {
  const auto accept = golden::mpa_reply();
  const ParsedStartup accepted = parse_startup(accept, FrameKind::reply);
  REQUIRE(accepted.status == StartupStatus::ok);
  CHECK_FALSE(accepted.frame.crc);
  CHECK_FALSE(accepted.frame.reject);
  CHECK(accepted.frame.private_data.empty());
  CHECK(accepted.consumed == 20);

  const auto reject = golden::mpa_reject();
  const ParsedStartup rejected = parse_startup(reject, FrameKind::reply);
  REQUIRE(rejected.status == StartupStatus::ok);
  CHECK(rejected.frame.kind == FrameKind::reply);
  CHECK(rejected.frame.reject);
  CHECK(rejected.frame.crc);
  CHECK(copy(rejected.frame.private_data) == text("no"));
}

TEST_CASE("an enhanced MPA Request is laid out as RFC 6581 says") {
  const auto hi = text("hi");
  const ReadyKinds all{.send = true, .write = true, .read = true};
  CHECK(encoded({.kind = FrameKind::request,
                 .crc = true,
                 .revision = 2,
                 .enhanced = Enhanced{.peer_to_peer = true, .ready = all, .ird = 16, .ord = 8},
                 .private_data = hi}) == golden::mpa_request_enhanced());
}

TEST_CASE("each flag of the enhanced data has its bit") {
  const auto flags = [](Enhanced enhanced) {
    const auto frame =
        encoded({.kind = FrameKind::reply, .crc = false, .revision = 2, .enhanced = enhanced});
    return std::vector(frame.begin() + 16, frame.end());
  };
  CHECK(flags({.peer_to_peer = true}) == hex("1002 0004 8000 0000"));
  CHECK(flags({.ready = {.send = true}}) == hex("1002 0004 4000 0000"));
  CHECK(flags({.ready = {.write = true}}) == hex("1002 0004 0000 8000"));
  CHECK(flags({.ready = {.read = true}}) == hex("1002 0004 0000 4000"));
  CHECK(flags({.ird = 0x3fff}) == hex("1002 0004 3fff 0000"));
  CHECK(flags({.ord = 0x3ffe}) == hex("1002 0004 0000 3ffe"));
}

TEST_CASE("parsing enhanced frames gives their fields") {
  const auto request = golden::mpa_request_enhanced();
  const ParsedStartup asked = parse_startup(request, FrameKind::request);
  REQUIRE(asked.status == StartupStatus::ok);
  CHECK(asked.frame.revision == 2);
  CHECK(asked.frame.enhanced == Enhanced{.peer_to_peer = true,
                                         .ready = {.send = true, .write = true, .read = true},
                                         .ird = 16,
                                         .ord = 8});
  CHECK(copy(asked.frame.private_data) == text("hi"));
  CHECK(asked.consumed == 26);

  const auto reply = golden::mpa_reply_enhanced();
  const ParsedStartup answered = parse_startup(reply, FrameKind::reply);
  REQUIRE(answered.status == StartupStatus::ok);
  CHECK(answered.frame.enhanced ==
        Enhanced{.peer_to_peer = true, .ready = {.write = true}, .ird = 8, .ord = 0x1234});
  CHECK(copy(answered.frame.private_data) == text("y"));
  CHECK_FALSE(answered.frame.crc);
}
