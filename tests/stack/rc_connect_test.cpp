// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/resource.h>

#include <ctime>
#include <set>

#include "stack/rc_support.h"

/// Connecting, listening, accepting and rejecting, with peers that do it right or wrong.
namespace diwarp::test {

namespace {

/// What connect() says about a server that treats its first connection like this.
template <class Serve>
std::error_code connect_to(Serve&& serve, const ConnectOptions& options = {}) {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  RawListener listener;
  auto serving = std::async(std::launch::async, [&] {
    RawTcp peer = listener.accept();
    serve(peer);
  });
  const std::error_code code = refusal([&] { party.qp.connect(listener.address(), options); });
  serving.get();
  CHECK(party.qp.state() == QpState::init);
  return code;
}

/// A device with a listener and a queue pair to accept with.
struct Server {
  explicit Server(const ListenOptions& options = {}, const char* address = "127.0.0.1")
      : device(Device::open(address)), party(device), listener(std::in_place, device, 0, options) {}

  ConnectionRequest request() {
    std::optional<ConnectionRequest> next = listener->get_request(kPatience);
    REQUIRE(next);
    return std::move(*next);
  }
  /// Whether it still serves: a plain socket connects and gets its reply.
  void check_alive() {
    RawTcp peer = RawTcp::connect(listener->address());
    REQUIRE(peer.send(to_bytes(MpaFrame{})));
    request().accept(party.qp);
    CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true}));
  }

  Device device;
  RcParty party;
  std::optional<Listener> listener;
};

void check_exchange(RcParty& a, RcParty& b) {
  a.fill(text("there"));
  b.post_receives(1, 100);
  REQUIRE_FALSE(a.send(0, 5));
  REQUIRE(next(b.recv_cq).status == WcStatus::success);
  CHECK(same(b.bytes(0, 5), text("there")));
  b.fill(text("back "));
  a.post_receives(1, 100);
  REQUIRE_FALSE(b.send(0, 5));
  REQUIRE(next(a.recv_cq).status == WcStatus::success);
  CHECK(same(a.bytes(0, 5), text("back ")));
}

}  // namespace

// --- Both ends are ours.

TEST_CASE("RC connects over IPv4, over IPv6, and to listeners on all addresses") {
  struct Case {
    const char* listens;
    const char* connects;
    const char* to;
  };
  const Case where =
      GENERATE(Case{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, Case{"::1", "::1", "::1"},
               Case{"0.0.0.0", "127.0.0.2", "127.0.0.3"}, Case{"::", "127.0.0.1", "127.0.0.1"},
               Case{"::", "::", "::1"}, Case{"127.0.0.1", "::", "127.0.0.1"});
  CAPTURE(where.listens, where.connects);
  Server server({}, where.listens);
  const Device device = Device::open(where.connects);
  RcParty client(device);
  const Address to = Address::parse(where.to).with_port(server.listener->address().port());
  auto connecting = std::async(std::launch::async, [&] { client.qp.connect(to); });
  ConnectionRequest request = server.request();
  const Address from = request.peer_address();
  request.accept(server.party.qp);
  connecting.get();
  check_exchange(client, server.party);
  CHECK(client.qp.query().peer_address == to);
  CHECK(client.qp.address() == from);
  CHECK(server.party.qp.query().peer_address == from);
  CHECK(server.party.qp.address() == to);
  if (!device.address().is_any()) CHECK(from.host() == device.address().host());
  CHECK(device.counter("rc_connections") == 1);
}

TEST_CASE("RC private data of 0 to 512 bytes passes both ways") {
  const size_t size = GENERATE(0U, 1U, 511U, 512U);
  Server server;
  RcParty client(server.device);
  const auto question = pattern(size, 1);
  const auto answer = pattern(size, 2);
  auto connecting = std::async(std::launch::async, [&] {
    return client.qp.connect(server.listener->address(), {.private_data = question});
  });
  ConnectionRequest request = server.request();
  CHECK(same(request.private_data(), question));
  request.accept(server.party.qp, {.private_data = answer});
  CHECK(connecting.get() == answer);
}

TEST_CASE("RC private data beyond 512 bytes is refused before anything is sent") {
  Server server;
  RcParty client(server.device);
  const std::vector<std::byte> excess(513);
  CHECK(refusal([&] { client.qp.connect(server.listener->address(), {.private_data = excess}); }) ==
        Errc::invalid_argument);
  auto connecting =
      std::async(std::launch::async, [&] { client.qp.connect(server.listener->address()); });
  ConnectionRequest request = server.request();
  CHECK(refusal([&] { request.accept(server.party.qp, {.private_data = excess}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { request.reject(excess); }) == Errc::invalid_argument);
  request.accept(server.party.qp);
  connecting.get();
}

TEST_CASE("An RC connect that is rejected throws the peer's private data") {
  Server server;
  RcParty client(server.device);
  const Address address = server.listener->address();
  std::vector<std::byte> reason = text("full");
  auto connecting = std::async(std::launch::async, [&]() -> std::vector<std::byte> {
    try {
      client.qp.connect(address);
    } catch (const RejectedError& error) {
      return error.code() == Errc::rejected ? error.private_data() : text("another code");
    }
    return text("no error");
  });
  SECTION("with private data") { server.request().reject(reason); }
  SECTION("with as much of it as there can be") {
    reason = pattern(512, 3);
    server.request().reject(reason);
  }
  SECTION("by dropping the request") {
    reason.clear();
    server.request();
  }
  SECTION("by closing the listener before it is fetched") {
    reason.clear();
    server.request().reject({});
    CHECK(connecting.get().empty());
    connecting = std::async(std::launch::async, [&]() -> std::vector<std::byte> {
      try {
        client.qp.connect(address);
      } catch (const Error&) {
        return {};
      }
      return text("no error");
    });
    server.listener.reset();
  }
  CHECK(connecting.get() == reason);
  CHECK(client.qp.state() == QpState::init);
  CHECK(server.device.counter("mpa_rejects") >= 2);
}

TEST_CASE("An RC request can be answered once, by a fitting queue pair") {
  Server server;
  const Device device = Device::open("127.0.0.1");
  RcParty client(device);
  auto connecting =
      std::async(std::launch::async, [&] { client.qp.connect(server.listener->address()); });
  ConnectionRequest request = server.request();
  Party datagrams(server.device);
  CHECK(refusal([&] { request.accept(datagrams.qp); }) == Errc::unsupported_operation);
  RcParty stranger(device);
  CHECK(refusal([&] { request.accept(stranger.qp); }) == Errc::invalid_argument);
  RcParty broken(server.device);
  broken.qp.modify(QpState::error);
  CHECK(refusal([&] { request.accept(broken.qp); }) == Errc::invalid_state);
  request.accept(server.party.qp);
  connecting.get();
  RcParty second(server.device);
  CHECK(refusal([&] { request.accept(second.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { request.reject(); }) == Errc::invalid_state);
  CHECK(refusal([&] { client.qp.connect(server.listener->address()); }) == Errc::invalid_state);
  CHECK(refusal([&] { datagrams.qp.connect(server.listener->address()); }) ==
        Errc::unsupported_operation);
  check_exchange(client, server.party);
}

TEST_CASE("An RC queue pair connects again after its connection ended and it was reset") {
  Server server;
  RcParty client(server.device);
  for (int round = 0; round < 3; ++round) {
    auto connecting =
        std::async(std::launch::async, [&] { client.qp.connect(server.listener->address()); });
    server.request().accept(server.party.qp);
    connecting.get();
    check_exchange(client, server.party);
    client.qp.disconnect();
    CHECK(server.party.qp.wait_disconnected(kPatience));
    for (RcParty* party : {&client, &server.party}) {
      CHECK(party->qp.state() == QpState::error);
      party->qp.modify(QpState::reset);
      party->qp.modify(QpState::init);
      drain(party->send_cq);
      drain(party->recv_cq);
    }
  }
}

TEST_CASE("Fifty RC connections at once are all served") {
  constexpr size_t kPeers = 50;
  Server server;
  const Device device = Device::open("127.0.0.1");
  std::deque<RcParty> clients;
  std::deque<RcParty> servers;
  std::vector<std::future<std::vector<std::byte>>> connecting;
  for (size_t i = 0; i < kPeers; ++i) {
    RcParty& client = clients.emplace_back(device, RcOptions{.memory = 256});
    servers.emplace_back(server.device, RcOptions{.memory = 256});
    connecting.push_back(std::async(std::launch::async, [&server, &client] {
      return client.qp.connect(server.listener->address(), {.timeout = kPatience});
    }));
  }
  for (RcParty& party : servers) server.request().accept(party.qp);
  for (auto& connection : connecting) connection.get();
  for (RcParty& party : servers) party.post_receives(1, 100);
  for (size_t i = 0; i < kPeers; ++i) {
    std::memcpy(clients[i].memory.data(), &i, sizeof i);
    REQUIRE_FALSE(clients[i].send(0, sizeof i));
  }
  std::set<size_t> seen;
  for (RcParty& party : servers) {
    REQUIRE(next(party.recv_cq).status == WcStatus::success);
    size_t number = 0;
    std::memcpy(&number, party.memory.data(), sizeof number);
    seen.insert(number);
  }
  CHECK(seen.size() == kPeers);
}

TEST_CASE("RC connects and talks in manual mode, each side stepped by its own thread") {
  const Device one = Device::open("127.0.0.1", {.progress = Progress::manual});
  const Device other = Device::open("127.0.0.1", {.progress = Progress::manual});
  RcParty a(one);
  RcParty b(other);
  Listener listener(other, 0);
  auto serving = std::async(std::launch::async, [&] {
    auto request = listener.get_request(kPatience);
    if (!request || b.post_recv(1, 0, 100)) return false;
    request->accept(b.qp, {.private_data = text("hello")});
    const auto received = b.recv_cq.wait(kPatience);
    const bool whole = received && received->status == WcStatus::success;
    return whole && !b.send(0, 5) && b.qp.wait_disconnected(kPatience);
  });
  CHECK(a.qp.connect(listener.address()) == text("hello"));
  a.post_receives(1, 100);
  REQUIRE_FALSE(a.send(0, 5));
  CHECK(next(a.recv_cq).status == WcStatus::success);
  a.qp.disconnect();
  CHECK(serving.get());
}

// --- The listener and its peers.

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

TEST_CASE("A listener rejects what it cannot agree to") {
  Server server;
  RawTcp peer = RawTcp::connect(server.listener->address());
  SECTION("markers") { REQUIRE(peer.send(to_bytes(MpaFrame{.flags = 0xc0}))); }
  SECTION("another revision") { REQUIRE(peer.send(to_bytes(MpaFrame{.revision = 2}))); }
  CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = 0x60}));
  CHECK(peer.ending() == Ending::in_order);
  CHECK(server.device.counter("mpa_rejects") == 1);
  CHECK_FALSE(server.listener->get_request(0s));
  server.check_alive();
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
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit before = limit;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_cur, 256);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
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
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
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

// --- Servers that are not what they should be.

TEST_CASE("RC connect to a port where nobody listens says so") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  RawListener gone;
  const Address nobody = gone.address();
  gone.close();
  CHECK(refusal([&] { party.qp.connect(nobody); }) == std::errc::connection_refused);
  CHECK(refusal([&] { party.qp.connect(Address::parse("127.0.0.1")); }) ==
        Errc::invalid_destination);
  CHECK(refusal([&] { party.qp.connect(Address::parse("[::1]:5")); }) == Errc::invalid_destination);
  CHECK(refusal([&] { party.qp.connect(Address::parse("0.0.0.0:5")); }) ==
        Errc::invalid_destination);
}

TEST_CASE("RC connect to a server of another kind tells what is wrong") {
  const auto answer = [](std::vector<std::byte> bytes) {
    return [bytes](RawTcp& peer) {
      peer.receive(20);
      peer.send(bytes);
      peer.ending();
    };
  };
  CHECK(connect_to(answer(text("HTTP/1.1 400 Bad Request\r\n"))) == Errc::protocol_error);
  CHECK(connect_to(answer(text("x"))) == Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{}))) == Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .revision = 0}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .flags = 0xc0}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .length = 600}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .flags = 0x60}))) == Errc::rejected);
}

TEST_CASE("RC connect to a server that breaks off says so") {
  CHECK(connect_to([](RawTcp& peer) { peer.receive(20); }) == Errc::connection_lost);
  CHECK(connect_to([](RawTcp& peer) {
          peer.receive(20);
          peer.send(first_of(to_bytes(MpaFrame{.reply = true}), 19));
        }) == Errc::connection_lost);
  CHECK(connect_to([](RawTcp& peer) { peer.reset(); }) == Errc::connection_lost);
}

TEST_CASE("RC connect to a server that keeps silent times out") {
  const ConnectOptions soon{.timeout = 50ms};
  CHECK(connect_to([](RawTcp& peer) { peer.ending(); }, soon) == Errc::timed_out);
  CHECK(connect_to(
            [](RawTcp& peer) {
              peer.send(first_of(to_bytes(MpaFrame{.reply = true}), 19));
              peer.ending();
            },
            soon) == Errc::timed_out);
}

TEST_CASE("RC connect takes a reply that comes in pieces, with FPDUs right behind it") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  party.post_receives(1, 100);
  RawListener listener;
  auto serving = std::async(std::launch::async, [&] {
    RawTcp peer = listener.accept();
    peer.receive(20);
    auto bytes = to_bytes(MpaFrame{.reply = true, .private_data = text("pd")});
    const auto first = to_bytes(Fpdu{.payload = text("early")});
    bytes.insert(bytes.end(), first.begin(), first.end());
    peer.send(std::span(bytes).first(10));
    peer.send(std::span(bytes).subspan(10, 30));
    peer.send(std::span(bytes).subspan(40));
    return peer.ending();
  });
  CHECK(party.qp.connect(listener.address()) == text("pd"));
  CHECK(next(party.recv_cq).byte_count == 5);
  CHECK(same(party.bytes(0, 5), text("early")));
  party.qp.modify(QpState::error);
  CHECK(serving.get() == Ending::in_order);
}

// --- Lifetimes.

TEST_CASE("RC handles may go in any order") {
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  std::optional<Device> device(Device::open("127.0.0.1", {.progress = progress}));
  std::optional<RcParty> a(std::in_place, *device);
  std::optional<RcParty> b(std::in_place, *device);
  std::optional<Listener> listener(std::in_place, *device, 0);
  RawTcp pending = RawTcp::connect(listener->address());
  RawTcp asking = RawTcp::connect(listener->address());
  REQUIRE(asking.send(to_bytes(MpaFrame{})));
  std::optional<ConnectionRequest> request = listener->get_request(kPatience);
  REQUIRE(request);
  SECTION("the device first") {
    device.reset();
    b.reset();
    listener.reset();
    request->accept(a->qp);
    request.reset();
    a.reset();
  }
  SECTION("the request last") {
    listener.reset();
    a.reset();
    b.reset();
    device.reset();
    request.reset();
  }
  SECTION("the listener last") {
    request.reset();
    a.reset();
    b.reset();
    device.reset();
    listener.reset();
  }
  CHECK(pending.ending() != Ending::none);
}

}  // namespace diwarp::test
