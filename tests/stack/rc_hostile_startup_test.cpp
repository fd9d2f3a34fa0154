// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// Start-up frames (RFC 5044 section 7.1, RFC 6581 section 6) that are wrong, from plain sockets.
namespace diwarp::test {

namespace {

enum class Outcome : uint8_t { request, ended, neither };

/// The outcome of a peer: the listener hands out its request, which is then dropped, or the peer
/// is closed.
Outcome outcome(Server& server, RawStream& peer) {
  for (int tries = 0; tries < 3000; ++tries) {
    pollfd watched{peer.descriptor(), POLLIN, 0};
    if (::poll(&watched, 1, 0) > 0) {
      CHECK(peer.ending() != Ending::none);
      return Outcome::ended;
    }
    if (server.listener->get_request(10ms)) return Outcome::request;
  }
  FAIL("nothing became of the peer");
  return Outcome::neither;
}

}  // namespace

TEST_CASE("A peer whose request has any octet of its key wrong is cut off") {
  Server server;
  for (size_t octet = 0; octet < 16; ++octet) {
    for (const std::byte error : {std::byte{0x01}, std::byte{0x20}, std::byte{0x80}}) {
      CAPTURE(octet);
      RawStream peer = RawStream::connect(server.listener->address());
      std::vector<std::byte> frame = to_bytes(MpaFrame{});
      frame[octet] ^= error;
      REQUIRE(peer.send(frame));
      CHECK(peer.ending() != Ending::none);
      CHECK_FALSE(server.listener->get_request(0s));
    }
  }
  CHECK(server.device.counter("mpa_bad_requests") == 16 * 3);
  server.check_alive();
}

TEST_CASE("A peer's request may have reserved flags and the reject bit set") {
  for (const uint8_t flags : {uint8_t{0x41}, uint8_t{0x48}, uint8_t{0x4F}, uint8_t{0x60}}) {
    CAPTURE(+flags);
    Server server;
    RawStream peer = RawStream::connect(server.listener->address());
    REQUIRE(peer.send(to_bytes(MpaFrame{.flags = flags})));
    server.request().accept(server.party.qp);
    CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true}));
  }
}

TEST_CASE("A peer that announces more private data than MPA has is cut off at once") {
  Server server;
  unsigned bad = 0;
  for (const uint8_t revision : {uint8_t{1}, uint8_t{2}}) {
    for (const uint16_t length : {uint16_t{513}, uint16_t{0x8000}, uint16_t{0xFFFF}}) {
      CAPTURE(+revision, length);
      RawStream peer = RawStream::connect(server.listener->address());
      const uint8_t flags = revision == 2 ? 0x50 : 0x40;
      REQUIRE(
          peer.send(to_bytes(MpaFrame{.flags = flags, .revision = revision, .length = length})));
      CHECK(peer.ending() != Ending::none);
      CHECK(server.device.counter("mpa_bad_requests") == ++bad);
    }
  }
  server.check_alive();
}

TEST_CASE(
    "Random start-up bytes get a reply, a rejection or nothing, and the next peer is served") {
  Server server;
  Random random(5044);
  unsigned requests = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> bytes = pattern(random.below(600), random.next());
    if (random.chance(0.7)) {  // a frame but for a few bits
      bytes = to_bytes(MpaFrame{.flags = static_cast<uint8_t>(random.next()),
                                .revision = static_cast<uint8_t>(random.below(4)),
                                .private_data = pattern(random.below(512), random.next())});
      if (random.chance(0.5)) {
        const size_t bit = random.below(8 * 20);
        bytes[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      }
    }
    RawStream peer = RawStream::connect(server.listener->address());
    peer.send(bytes);
    peer.shutdown();
    requests += outcome(server, peer) == Outcome::request ? 1 : 0;
  }
  CHECK(requests > 0);
  server.check_alive();
}

}  // namespace diwarp::test
