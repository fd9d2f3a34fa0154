// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <ctime>
#include <optional>

#include "stack/full_listener.h"
#include "stack/rc_support.h"
#include "support/captured_stderr.h"
#include "support/descriptors.h"
#include "support/sanitizers.h"

/// Listeners, and peers with plain sockets that do it right or wrong.
namespace diwarp::test {

namespace {

bool is_open(const RawStream& peer) {
  pollfd watched{peer.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, 0) == 0;
}

void make_ready_again(RcParty& party) {
  for (const QpState to : {QpState::error, QpState::reset, QpState::init}) party.qp.modify(to);
}

/// All of it has run once, and no descriptor of that is left.
[[maybe_unused]] void warm_up(Server& server) {
  server.check_alive();
  REQUIRE(server.party.qp.wait_disconnected(kPatience));
  make_ready_again(server.party);
}

/// All descriptors that this process may still open.
class Hoard {
 public:
  Hoard() : limit_(256) {
    for (;;) {
      UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!fd) break;
      taken_.push_back(std::move(fd));
    }
  }
  void give_back(size_t count) { taken_.resize(taken_.size() - count); }

 private:
  DescriptorLimit limit_;
  std::vector<UniqueFd> taken_;
};

}  // namespace

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
  RawStream peer = RawStream::connect(server.listener->address());
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
  RawStream silent = RawStream::connect(server.listener->address());
  RawStream slow = RawStream::connect(server.listener->address());
  REQUIRE(slow.send(first_of(to_bytes(MpaFrame{}), 19)));
  CHECK(silent.ending() == Ending::in_order);
  CHECK(slow.ending() == Ending::in_order);
  CHECK(server.device.counter("mpa_timeouts") == 2);
  server.check_alive();
}

TEST_CASE("Silent connections of many addresses keep nobody out") {
  Server server({.request_timeout = 2 * kPatience});
  std::vector<RawStream> silent;
  for (int i = 0; i < 300; ++i)
    silent.push_back(connect_from(2 + i % 20, server.listener->address()));
  server.check_alive();
  CHECK(server.device.counter("mpa_evicted") >= 45);
  CHECK(server.device.counter("mpa_timeouts") == 0);
}

TEST_CASE("Of an address with too many silent connections the oldest gives way, and no other's") {
  Server server({.max_startups_per_address = 2, .request_timeout = 2 * kPatience});
  const Address to = server.listener->address();
  RawStream other = connect_from(9, to);
  RawStream first = connect_from(2, to);
  RawStream second = connect_from(2, to);
  RawStream third = connect_from(2, to);
  CHECK(first.ending() == Ending::in_order);
  CHECK(server.device.counter("mpa_evicted") == 1);
  CHECK(is_open(other));
  CHECK(is_open(second));
  REQUIRE(third.send(to_bytes(MpaFrame{.private_data = text("third")})));
  CHECK(same(server.request().private_data(), text("third")));
  REQUIRE(other.send(to_bytes(MpaFrame{.private_data = text("other")})));
  CHECK(same(server.request().private_data(), text("other")));
}

TEST_CASE("In a full table of start-ups the oldest gives way, even if it has begun its request") {
  Server server({.max_startups = 3, .request_timeout = 2 * kPatience});
  const Address to = server.listener->address();
  RawStream begun = connect_from(2, to);
  REQUIRE(begun.send(first_of(to_bytes(MpaFrame{}), 19)));
  RawStream second = connect_from(3, to);
  RawStream third = connect_from(4, to);
  RawStream fourth = connect_from(5, to);
  CHECK(begun.ending() != Ending::none);
  CHECK(is_open(second));
  CHECK(is_open(third));
  server.check_alive();  // it takes the place of the second
  CHECK(server.device.counter("mpa_evicted") == 2);
  CHECK(is_open(fourth));
}

TEST_CASE("A start-up that is over leaves its place") {
  Server server({.max_startups = 1, .request_timeout = 2 * kPatience});
  for (int i = 0; i < 5; ++i) {
    server.check_alive();
    make_ready_again(server.party);
  }
  CHECK(server.device.counter("mpa_evicted") == 0);
}

TEST_CASE("Listeners that could have no start-up, or no bound, are refused") {
  const Device device = Device::open("127.0.0.1");
  const auto with = [&](const ListenOptions& options) {
    return refusal([&] { Listener listener(device, 0, options); });
  };
  CHECK(with({.max_startups = 0}) == Errc::invalid_argument);
  CHECK(with({.max_startups = 4097}) == Errc::invalid_argument);
  CHECK(with({.max_startups_per_address = 0}) == Errc::invalid_argument);
  CHECK(with({.max_startups_per_address = 4097}) == Errc::invalid_argument);
}

TEST_CASE("A listener takes a request that comes byte by byte") {
  Server server({.request_timeout = kPatience});
  RawStream peer = RawStream::connect(server.listener->address());
  const int on = 1;  // TCP gathers bytes else
  ::setsockopt(peer.descriptor(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto bytes = to_bytes(MpaFrame{.private_data = text("piecemeal")});
  for (const std::byte& byte : bytes) REQUIRE(peer.send({&byte, 1}));
  CHECK(same(server.request().private_data(), text("piecemeal")));
}

TEST_CASE("A listener rejects other revisions of MPA in the nearest that it speaks") {
  Server server;
  RawStream peer = RawStream::connect(server.listener->address());
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
  RawStream peer = RawStream::connect(server.listener->address());
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
  RawStream peer = RawStream::connect(server.listener->address());
  REQUIRE(peer.send(to_bytes(MpaFrame{.flags = static_cast<uint8_t>(peer_asks ? 0x40 : 0)})));
  server.request().accept(server.party.qp, {.crc = own});
  const uint8_t flags = peer_asks || own ? 0x40 : 0;
  CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = flags}));
}

TEST_CASE("A listener keeps only so many requests and rejects the others") {
  Server server({.max_requests = 2});
  std::vector<RawStream> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(RawStream::connect(server.listener->address()));
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

TEST_CASE("Requests of one address that nobody fetches do not keep out another address") {
  Server server({.max_requests = FullListener::kRequests});
  const FullListener full(server.listener->address());
  size_t found = 0;
  for (size_t i = 0; i < FullListener::kRequests; ++i)
    found += same(server.request().private_data(), text("honest"));
  CHECK(found == 1);
}

// Not under UBSan: its check of virtual tables probes memory through a pipe, for which this test
// leaves no descriptor.
#if !defined(DIWARP_ADDRESS_SANITIZER)
TEST_CASE("A listener without descriptors refuses connections at once, and says so", "[reserve]") {
  Server server;
  warm_up(server);
  EventQueue events(server.device);
  std::vector<RawStream> peers;
  for (int i = 0; i < 20; ++i) peers.emplace_back(raw::open(raw::Kind::stream));
  const CapturedStderr errors;
  std::optional<Hoard> hoard(std::in_place);
  // Nothing is asserted while there are no descriptors: UBSan needs some to look at memory.
  const Address to = server.listener->address();
  size_t refused = 0;
  for (RawStream& peer : peers) {
    const bool begun = raw::connect(peer.descriptor(), to);
    if (!begun || peer.ending() == Ending::reset) ++refused;
  }
  const std::clock_t before_waiting = std::clock();
  const bool got = server.listener->get_request(300ms).has_value();
  const std::clock_t used = std::clock() - before_waiting;
  hoard.reset();
  CHECK(refused == peers.size());
  CHECK_FALSE(got);
  CHECK(used < CLOCKS_PER_SEC / 5);
  CHECK(server.device.counter("accept_refused") == peers.size());
  const std::optional<AsyncEvent> told = events.get_event(kPatience);
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::accept_refused);
  CHECK(told->address == server.listener->address());
  CHECK_FALSE(events.get_event(Duration::zero()));
  const std::string logged = errors.text();
  CAPTURE(logged);
  const std::string notice =
      "[warn] The listener on " + server.listener->address().to_string() +
      " refuses connections: no descriptor is left; raise the limit (ulimit -n, fs.file-max) or "
      "close some\n";
  CHECK(logged.find(notice) != std::string::npos);
  CHECK(logged.find(notice) == logged.rfind(notice));  // told once
  server.check_alive();
}

TEST_CASE("Silent connections that hold all descriptors keep nobody out") {
  Server server({.request_timeout = 2 * kPatience});
  warm_up(server);
  std::vector<RawStream> peers;
  for (int i = 0; i < 41; ++i) peers.emplace_back(raw::open(raw::Kind::stream));
  const Address to = server.listener->address();
  std::optional<Hoard> hoard(std::in_place);
  hoard->give_back(10);
  int connected = 0;
  for (const RawStream& peer : peers)
    if (raw::connect(peer.descriptor(), to)) ++connected;
  const bool sent = peers.back().send(to_bytes(MpaFrame{.private_data = text("let in")}));
  std::optional<ConnectionRequest> request = server.listener->get_request(kPatience);
  hoard.reset();
  CHECK(connected == 41);
  CHECK(sent);
  REQUIRE(request);
  CHECK(same(request->private_data(), text("let in")));
  CHECK(server.device.counter("mpa_evicted") >= 30);
  CHECK(server.device.counter("accept_refused") == 0);
}

TEST_CASE("A start-up that has taken the last descriptor keeps it") {
  Server server({.request_timeout = 2 * kPatience});
  warm_up(server);
  RawStream peer(raw::open(raw::Kind::stream));
  const Address to = server.listener->address();
  std::optional<Hoard> hoard(std::in_place);
  hoard->give_back(1);
  const bool connected = raw::connect(peer.descriptor(), to);
  const bool came = connected && server.listener->get_request(100ms).has_value();
  const bool sent = peer.send(to_bytes(MpaFrame{.private_data = text("late")}));
  std::optional<ConnectionRequest> request = server.listener->get_request(kPatience);
  hoard.reset();
  CHECK(connected);
  CHECK_FALSE(came);
  CHECK(sent);
  REQUIRE(request);
  CHECK(same(request->private_data(), text("late")));
  CHECK(server.device.counter("mpa_evicted") == 0);
}

TEST_CASE("Set-up that finds no descriptor throws an error with a message") {
  constexpr size_t kMost = 32;
  Server first;  // what a process takes once is taken
  size_t spare = 0;
  size_t refused = 0;
  size_t without_message = 0;
  bool works = false;
  for (; spare < kMost && !works; ++spare) {
    Hoard hoard;
    hoard.give_back(spare);
    try {
      Device device = Device::open("127.0.0.1");
      Listener listener(device, 0);
      works = true;
    } catch (const Error& error) {
      ++refused;
      without_message += error.what() == error.code().message();
    } catch (const std::exception&) {
      ++without_message;
    }
  }
  CHECK(works);
  CHECK(refused > 0);  // a ring that ends gives its descriptors back later
  CHECK(without_message == 0);
}

TEST_CASE("A listener that finds no descriptor tells so") {
  Server server;
  const auto spare =
      GENERATE(size_t{0}, size_t{1}, size_t{2});  // which it takes for other things first
  std::optional<Hoard> hoard(std::in_place);
  hoard->give_back(spare);
  std::error_code told = std::make_error_code(std::errc::too_many_files_open);
  try {
    Listener second(server.device, 0);
  } catch (const Error& error) {
    told = error.code();
  }
  hoard.reset();
  CAPTURE(spare);
  CHECK(told == std::errc::too_many_files_open);
}
#endif

TEST_CASE("RC accept of a peer that has gone is refused, or ends soon") {
  Server server;
  {
    RawStream peer = RawStream::connect(server.listener->address());
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
