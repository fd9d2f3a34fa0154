// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "stack/rc_support.h"

/// Connecting, accepting and rejecting, where both ends are this library's.
namespace diwarp::test {

namespace {

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

TEST_CASE("RC connects over IPv4, over IPv6, and to listeners on all addresses", "[any]") {
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

namespace {

/// Of the system's choice, and kept from others: a listener that shares addresses may have it.
UniqueFd bound_socket(Address& address) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  REQUIRE(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sockaddr_storage name{};
  socklen_t length = Address::loopback(AddressFamily::ipv4).to_sockaddr(name);
  REQUIRE(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &length) == 0);
  address = Address::from_sockaddr(reinterpret_cast<sockaddr*>(&name));
  return fd;
}

}  // namespace

TEST_CASE("RC connects to a peer that listens a moment later, if it may try again") {
  const Device device = Device::open("127.0.0.1");
  RcParty server(device);
  RcParty client(device);
  Address there;
  const UniqueFd reserved = bound_socket(there);
  CHECK(refusal([&] { client.qp.connect(there); }) == std::errc::connection_refused);
  CHECK(refusal([&] { client.qp.connect(there, {.retry_refused = 50ms}); }) ==
        std::errc::connection_refused);
  CHECK(refusal([&] { client.qp.connect(there, {.timeout = 50ms, .retry_refused = 50ms}); }) ==
        std::errc::connection_refused);
  auto connecting = std::async(std::launch::async, [&] {
    client.qp.connect(there, {.timeout = kPatience, .retry_refused = kPatience});
  });
  std::this_thread::sleep_for(50ms);
  Listener listener(device, there.port());
  ConnectionRequest request = *listener.get_request(kPatience);
  request.accept(server.qp);
  connecting.get();
  check_exchange(client, server);
}

TEST_CASE("RC tries again where connections are taken and ended until somebody listens") {
  const Device device = Device::open("127.0.0.1");
  RcParty server(device);
  RcParty client(device);
  RawListener forwarder;
  const Address there = forwarder.address();
  auto connecting = std::async(std::launch::async, [&] {
    client.qp.connect(there, {.timeout = kPatience, .retry_refused = kPatience});
  });
  // In revision 2, in revision 1, and once more.
  for (int i = 0; i < 3; ++i) forwarder.accept().reset();
  forwarder.close();
  Listener listener(device, there.port());
  auto request = listener.get_request(kPatience);
  REQUIRE(request);
  request->accept(server.qp);
  connecting.get();
  check_exchange(client, server);
}

TEST_CASE("RC private data of 0 to 512 bytes, 508 with revision 2, passes both ways") {
  struct Case {
    uint8_t revision;
    size_t size;
  };
  const auto [revision, size] = GENERATE(Case{2, 0}, Case{2, 1}, Case{2, 507}, Case{2, 508},
                                         Case{1, 0}, Case{1, 511}, Case{1, 512});
  Server server;
  RcParty client(server.device);
  const auto question = pattern(size, 1);
  const auto answer = pattern(size, 2);
  const ConnectOptions asks{.private_data = question, .revision = revision};
  auto connecting = std::async(std::launch::async,
                               [&] { return client.qp.connect(server.listener->address(), asks); });
  ConnectionRequest request = server.request();
  CHECK(request.revision() == revision);
  CHECK(same(request.private_data(), question));
  request.accept(server.party.qp, {.private_data = answer});
  CHECK(connecting.get() == answer);
}

TEST_CASE("RC private data beyond what the revision carries is refused before anything is sent") {
  const uint8_t revision = GENERATE(uint8_t{1}, uint8_t{2});
  const std::vector<std::byte> excess(revision == 1 ? 513 : 509);
  Server server;
  RcParty client(server.device);
  const ConnectOptions too_much{.private_data = excess, .revision = revision};
  CHECK(refusal([&] { client.qp.connect(server.listener->address(), too_much); }) ==
        Errc::invalid_argument);
  const ConnectOptions asks{.revision = revision};
  auto connecting =
      std::async(std::launch::async, [&] { client.qp.connect(server.listener->address(), asks); });
  ConnectionRequest request = server.request();
  CHECK(refusal([&] { request.accept(server.party.qp, {.private_data = excess}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { request.reject(excess); }) == Errc::invalid_argument);
  request.accept(server.party.qp);
  connecting.get();
}

TEST_CASE("RC options that MPA cannot tell are refused before anything is sent") {
  Server server;
  RcParty client(server.device);
  const Address to = server.listener->address();
  for (const ConnectOptions& wrong :
       {ConnectOptions{.revision = 0}, ConnectOptions{.revision = 3}, ConnectOptions{.ord = 16383},
        ConnectOptions{.ird = 16383}, ConnectOptions{.ird = 65535}})
    CHECK(refusal([&] { client.qp.connect(to, wrong); }) == Errc::invalid_argument);
  auto connecting = std::async(std::launch::async, [&] { client.qp.connect(to); });
  ConnectionRequest request = server.request();
  CHECK(refusal([&] { request.accept(server.party.qp, {.ord = 16383}); }) ==
        Errc::invalid_argument);
  request.accept(server.party.qp, {.ord = 16382, .ird = 16382});
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
    reason = pattern(508, 3);
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

TEST_CASE("RC handles may go in any order") {
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  std::optional<Device> device(Device::open("127.0.0.1", {.progress = progress}));
  std::optional<RcParty> a(std::in_place, *device);
  std::optional<RcParty> b(std::in_place, *device);
  std::optional<Listener> listener(std::in_place, *device, 0);
  RawStream pending = RawStream::connect(listener->address());
  RawStream asking = RawStream::connect(listener->address());
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
