// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <ctime>
#include <optional>

#include "stack/rc_support.h"
#include "support/descriptors.h"

/// Listeners, and peers with plain sockets that do it right or wrong.
namespace diwarp::test {

TEST_CASE("A listener on a port in use is told so") {
  Server server;
  const uint16_t port = server.listener->address().port();
  CHECK(refusal([&] { Listener second(server.device, port); }) == Errc::address_in_use);
  server.listener.reset();
  Listener second(server.device, port);
  CHECK(second.address() == Address::parse("127.0.0.1").with_port(port));
}

TEST_CASE("A listener that nobody calls gives nothing after the timeout") {
  Server server;
  CHECK_FALSE(server.listener->get_request(0s));
  CHECK_FALSE(server.listener->get_request(5ms));
}

TEST_CASE("A listener closes what is not MPA and serves the next") {
  Server server;
  RawTcp peer = RawTcp::connect(server.listener->address());
  std::vector<std::byte> garbage;
  SECTION("another protocol") { garbage = text("GET / HTTP/1.1\r\n\r\n"); }
  SECTION("a wrong letter at the key's end") {
    garbage = to_bytes(MpaFrame{});
    garbage[15] = std::byte{'f'};
  }
  SECTION("a reply instead of a request") { garbage = to_bytes(MpaFrame{.reply = true}); }
  SECTION("more private data announced than allowed") {
    garbage = to_bytes(MpaFrame{.length = 513});
  }
  SECTION("enhanced data announced, but none there") {
    garbage = to_bytes(MpaFrame{.flags = 0x50, .revision = 2, .private_data = text("abc")});
  }
  SECTION("a request that breaks off") {
    garbage = to_bytes(MpaFrame{.length = 10});
    REQUIRE(peer.send(garbage));
    garbage.clear();
    peer.shutdown();
  }
  SECTION("nothing at all") { peer.shutdown(); }
  REQUIRE(peer.send(garbage));
  CHECK(peer.ending() != Ending::none);
  CHECK(server.device.counter("mpa_bad_requests") == 1);
  CHECK_FALSE(server.listener->get_request(0s));
  server.check_alive();
}

TEST_CASE("A listener drops peers that take too long and serves the next meanwhile") {
  Server server({.request_timeout = 100ms});
  RawTcp silent = RawTcp::connect(server.listener->address());
  RawTcp slow = RawTcp::connect(server.listener->address());
  REQUIRE(slow.send(first_of(to_bytes(MpaFrame{}), 19)));
  CHECK(silent.ending() == Ending::in_order);
  CHECK(slow.ending() == Ending::in_order);
  CHECK(server.device.counter("mpa_timeouts") == 2);
  server.check_alive();
}

TEST_CASE("A listener takes a request that comes byte by byte") {
  Server server({.request_timeout = kPatience});
  RawTcp peer = RawTcp::connect(server.listener->address());
  const int on = 1;
  ::setsockopt(peer.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto bytes = to_bytes(MpaFrame{.private_data = text("piecemeal")});
  for (const std::byte& byte : bytes) REQUIRE(peer.send({&byte, 1}));
  CHECK(same(server.request().private_data(), text("piecemeal")));
}

TEST_CASE("A listener rejects other revisions of MPA in the nearest that it speaks") {
  Server server;
  RawTcp peer = RawTcp::connect(server.listener->address());
  uint8_t answered = 2;
  SECTION("later") { REQUIRE(peer.send(to_bytes(MpaFrame{.revision = 3}))); }
  SECTION("much later") { REQUIRE(peer.send(to_bytes(MpaFrame{.revision = 255}))); }
  SECTION("earlier") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.revision = 0})));
    answered = 1;
  }
  CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = 0x60, .revision = answered}));
  CHECK(peer.ending() == Ending::in_order);
  CHECK(server.device.counter("mpa_rejects") == 1);
  CHECK_FALSE(server.listener->get_request(0s));
  server.check_alive();
}

TEST_CASE("A listener sends markers to a peer that asks, and asks for some if told to") {
  const bool peer_asks = GENERATE(true, false);
  const bool own = GENERATE(true, false);
  Server server;
  RawTcp peer = RawTcp::connect(server.listener->address());
  REQUIRE(peer.send(to_bytes(MpaFrame{.flags = static_cast<uint8_t>(peer_asks ? 0xc0 : 0x40)})));
  server.request().accept(server.party.qp, {.markers = own});
  const uint8_t flags = own ? 0xc0 : 0x40;
  CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = flags}));
  CHECK(server.party.qp.query().send_markers == peer_asks);
  CHECK(server.party.qp.query().receive_markers == own);
}

TEST_CASE("A listener uses CRCs if either side asks for them") {
  const bool peer_asks = GENERATE(true, false);
  const bool own = GENERATE(true, false);
  Server server;
  RawTcp peer = RawTcp::connect(server.listener->address());
  REQUIRE(peer.send(to_bytes(MpaFrame{.flags = static_cast<uint8_t>(peer_asks ? 0x40 : 0)})));
  server.request().accept(server.party.qp, {.crc = own});
  const uint8_t flags = peer_asks || own ? 0x40 : 0;
  CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = flags}));
}

TEST_CASE("A listener keeps only so many requests and rejects the others") {
  Server server({.max_requests = 2});
  std::vector<RawTcp> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(RawTcp::connect(server.listener->address()));
    REQUIRE(peers.back().send(to_bytes(MpaFrame{})));
  }
  // Which of them is too much depends on the order in which their requests were read.
  std::array<pollfd, 3> watched;
  for (size_t i = 0; i < 3; ++i) watched[i] = {peers[i].descriptor(), POLLIN, 0};
  REQUIRE(::poll(watched.data(), watched.size(), 30000) == 1);
  for (size_t i = 0; i < 3; ++i) {
    if (watched[i].revents == 0) continue;
    CHECK(peers[i].receive(20) == to_bytes(MpaFrame{.reply = true, .flags = 0x60}));
  }
  CHECK(server.device.counter("mpa_rejects") == 1);
  server.request();
  server.request();
}

// Not under UBSan: its check of virtual tables probes memory through a pipe, for which this test
// leaves no descriptor.
#if !defined(__SANITIZE_ADDRESS__)
TEST_CASE("A listener without descriptors waits for some instead of spinning") {
  Server server;
  REQUIRE(server.device.counter("rc_connections") == 0);
  RawTcp warm = RawTcp::connect(server.listener->address());
  REQUIRE(warm.send(to_bytes(MpaFrame{})));
  server.request();
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::vector<UniqueFd> hoard;
  std::optional<DescriptorLimit> limit(256);
  for (;;) {
    UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!fd) break;
    hoard.push_back(std::move(fd));
  }
  // Nothing is asserted while there are no descriptors: UBSan needs some to look at memory.
  sockaddr_storage name;
  const socklen_t length = server.listener->address().to_sockaddr(name);
  const bool connected = ::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), length) == 0;
  RawTcp peer(std::move(socket));
  const bool asked = connected && peer.send(to_bytes(MpaFrame{.private_data = text("patient")}));
  const std::clock_t before_waiting = std::clock();
  const bool got = server.listener->get_request(300ms).has_value();
  const std::clock_t used = std::clock() - before_waiting;
  hoard.clear();
  limit.reset();
  REQUIRE(asked);
  CHECK_FALSE(got);
  CHECK(used < CLOCKS_PER_SEC / 5);
  CHECK(same(server.request().private_data(), text("patient")));
}
#endif

TEST_CASE("RC accept of a peer that has gone is refused, or ends soon") {
  Server server;
  {
    RawTcp peer = RawTcp::connect(server.listener->address());
    REQUIRE(peer.send(to_bytes(MpaFrame{})));
    ConnectionRequest request = server.request();
    peer.reset();
    std::error_code code;
    try {
      request.accept(server.party.qp);
    } catch (const Error& error) {
      code = error.code();
    }
    if (code) {
      CHECK(code == Errc::connection_lost);
      CHECK(server.party.qp.state() == QpState::init);
    } else {
      CHECK(server.party.qp.wait_disconnected(kPatience));
    }
  }
}

}  // namespace diwarp::test
