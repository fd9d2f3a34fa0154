// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "diwarp/connection_manager.h"
#include "stack/rc_support.h"

/// The connection manager: ids and their events.
namespace diwarp::test {

namespace {

CmEvent next_event(CmEventChannel& channel, CmEventType expected) {
  std::optional<CmEvent> event = channel.get_event(kPatience);
  REQUIRE(event);
  INFO(event->sentence);
  REQUIRE(to_string(event->type) == to_string(expected));
  return std::move(*event);
}

/// A listening id, and what it takes to accept with.
struct CmServer {
  explicit CmServer(const DeviceOptions& options = {}, const ListenOptions& listen = {})
      : device(Device::open("127.0.0.1", options)), party(device), listener(device, channel, 7) {
    listener.bind(Address::parse("127.0.0.1"));
    listener.listen(listen);
  }
  CmEvent request() { return next_event(channel, CmEventType::connect_request); }

  Device device;
  RcParty party;
  CmEventChannel channel;
  CmId listener;
};

/// An id that connects, with its own channel.
struct CmClient {
  explicit CmClient(const Device& device) : party(device), id(std::in_place, device, channel, 42) {}

  void resolve(const Address& peer) {
    id->resolve_addr(peer);
    next_event(channel, CmEventType::addr_resolved);
    id->resolve_route();
    next_event(channel, CmEventType::route_resolved);
  }
  void connect(const Address& peer, const ConnectOptions& options = {}) {
    resolve(peer);
    id->connect(party.qp, options);
  }

  RcParty party;
  CmEventChannel channel;
  std::optional<CmId> id;
};

/// Both sides established.
struct CmCouple {
  explicit CmCouple(const DeviceOptions& options = {}, const ConnectOptions& asks = {})
      : server(options), client_device(Device::open("127.0.0.1")), client(client_device) {
    client.connect(server.listener.local_address(), asks);
    CmEvent event = server.request();
    accepted.emplace(std::move(*event.request));
    accepted->accept(server.party.qp);
    next_event(client.channel, CmEventType::established);
    next_event(server.channel, CmEventType::established);
  }

  CmServer server;
  Device client_device;
  CmClient client;
  std::optional<CmId> accepted;
};

void check_exchange(RcParty& a, RcParty& b) {
  b.post_receives(1, 100);
  a.fill(text("there"));
  REQUIRE_FALSE(a.send(0, 5));
  REQUIRE(next(b.recv_cq).byte_count == 5);
  CHECK(same(b.bytes(0, 5), text("there")));
}

void check_quiet(CmEventChannel& channel) { CHECK_FALSE(channel.get_event(20ms)); }

}  // namespace

TEST_CASE("CM connects with private data and depths, and both sides may speak first") {
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  const auto question = text("question");
  const auto answer = text("answer");
  client.connect(server.listener.local_address(), {.private_data = question, .ord = 5, .ird = 3});
  CmEvent request = server.request();
  CHECK(request.listener == server.listener.number());
  CHECK(request.context == 7);
  CHECK(request.private_data == question);
  CHECK(request.ord == 3);
  CHECK(request.ird == 5);
  REQUIRE(request.request);
  CHECK(request.request->number() == request.id);
  CHECK(request.request->local_address() == server.listener.local_address());
  request.request->set_context(8);
  request.request->accept(server.party.qp, {.private_data = answer, .ord = 2, .ird = 4});

  const CmEvent at_client = next_event(client.channel, CmEventType::established);
  CHECK(at_client.id == client.id->number());
  CHECK(at_client.context == 42);
  CHECK(at_client.private_data == answer);
  CHECK(at_client.ord == 4);
  CHECK(at_client.ird == 2);
  CHECK_FALSE(at_client.status);
  const CmEvent at_server = next_event(server.channel, CmEventType::established);
  CHECK(at_server.id == request.id);
  CHECK(at_server.context == 8);
  CHECK(at_server.ord == 2);
  CHECK(at_server.ird == 4);
  CHECK(client.id->peer_address() == server.listener.local_address());
  CHECK(client.id->local_address() == request.request->peer_address());

  check_exchange(server.party, client.party);
  check_exchange(client.party, server.party);
}

TEST_CASE("CM disconnects in order, told to both sides once") {
  CmCouple couple;
  SECTION("by the side that connected") { couple.client.id->disconnect(); }
  SECTION("by the side that accepted") { couple.accepted->disconnect(); }
  SECTION("by both") {
    couple.client.id->disconnect();
    couple.accepted->disconnect();
  }
  next_event(couple.client.channel, CmEventType::disconnected);
  // A peer that closes is answered by closing: the queue pair's rule for an orderly end.
  next_event(couple.server.channel, CmEventType::disconnected);
  CHECK(couple.client.party.qp.state() == QpState::error);
  CHECK(couple.server.party.qp.state() == QpState::error);
  couple.client.id->disconnect();
  check_quiet(couple.client.channel);
  check_quiet(couple.server.channel);
}

TEST_CASE("CM tells that a connection ended however it ends") {
  CmCouple couple;
  CmEventChannel* told = &couple.server.channel;
  SECTION("a queue pair in error") { couple.client.party.qp.modify(QpState::error); }
  SECTION("a queue pair that was reset") { couple.client.party.qp.modify(QpState::reset); }
  SECTION("an id that is destroyed") { couple.client.id.reset(); }
  SECTION("the other id that is destroyed") {
    couple.accepted.reset();
    told = &couple.client.channel;
  }
  next_event(*told, CmEventType::disconnected);
}

TEST_CASE("CM tells that a connection ended to the side whose queue pair ended it") {
  CmCouple couple;
  couple.client.party.qp.modify(QpState::error);
  next_event(couple.client.channel, CmEventType::disconnected);
}

TEST_CASE("CM tells that a connection ended when its queue pair is destroyed") {
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmEventChannel channel;
  CmId id(device, channel);
  auto party = std::make_unique<RcParty>(device);
  id.resolve_addr(server.listener.local_address());
  next_event(channel, CmEventType::addr_resolved);
  id.connect(party->qp);
  CmEvent request = server.request();
  SECTION("established") {
    request.request->accept(server.party.qp);
    next_event(channel, CmEventType::established);
    party.reset();
    next_event(channel, CmEventType::disconnected);
  }
  SECTION("while it is being connected") {
    party.reset();
    request.request->accept(server.party.qp);
    CHECK(next_event(channel, CmEventType::connect_error).status == Errc::invalid_state);
  }
}

TEST_CASE("CM tells rejects apart from failures") {
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  SECTION("a reject with private data") {
    CmServer server;
    client.connect(server.listener.local_address());
    server.request().request->reject(text("full"));
    const CmEvent event = next_event(client.channel, CmEventType::rejected);
    CHECK(event.status == Errc::rejected);
    CHECK(event.private_data == text("full"));
    CHECK_FALSE(event.sentence.empty());
  }
  SECTION("a request that is dropped") {
    CmServer server;
    client.connect(server.listener.local_address());
    server.request();
    next_event(client.channel, CmEventType::rejected);
  }
  SECTION("nobody who listens") {
    RawListener gone;
    const Address nobody = gone.address();
    gone.close();
    client.connect(nobody);
    CHECK(next_event(client.channel, CmEventType::rejected).status ==
          std::errc::connection_refused);
  }
  SECTION("a peer that closes without an answer") {
    RawListener listener;
    client.connect(listener.address());
    listener.accept();
    listener.accept();  // in revision 1
    CHECK(next_event(client.channel, CmEventType::rejected).status == Errc::connection_lost);
  }
  SECTION("a peer that keeps silent") {
    RawListener listener;
    client.connect(listener.address(), {.timeout = 50ms});
    CHECK(next_event(client.channel, CmEventType::unreachable).status == Errc::timed_out);
  }
  SECTION("a peer that is not MPA") {
    RawListener listener;
    client.connect(listener.address());
    RawTcp peer = listener.accept();
    REQUIRE(peer.send(text("220 ready\r\n")));
    CHECK(next_event(client.channel, CmEventType::connect_error).status == Errc::protocol_error);
  }
  // The queue pair is as good as new.
  CHECK(client.party.qp.state() == QpState::init);
  CmServer server;
  client.id.emplace(device, client.channel, 1);
  client.connect(server.listener.local_address());
  server.request().request->accept(server.party.qp);
}

TEST_CASE("CM tells that an address cannot be reached") {
  const Device device = Device::open("127.0.0.1");
  CmEventChannel channel;
  CmId id(device, channel, 3);
  CHECK(refusal([&] { id.resolve_addr(Address::parse("[::1]:5")); }) == Errc::invalid_destination);
  CHECK(refusal([&] { id.resolve_addr(Address::parse("127.0.0.1")); }) ==
        Errc::invalid_destination);
  // From a loopback address the kernel sends nowhere else.
  id.resolve_addr(Address::parse("198.51.100.1:5"));
  const CmEvent event = next_event(channel, CmEventType::addr_error);
  CHECK(event.context == 3);
  CHECK(event.status);
  id.resolve_addr(Address::parse("127.0.0.1:5"));
  next_event(channel, CmEventType::addr_resolved);
  CHECK(id.local_address().host() == "127.0.0.1");
}

TEST_CASE("CM accepts from a peer that vanished, and tells") {
  CmServer server;
  RawTcp peer = RawTcp::connect(server.listener.local_address());
  const auto request = from_hex(
      "4d504120494420526571204672616d65"
      "50020004c001c001");
  REQUIRE(peer.send(request));
  CmEvent event = server.request();
  SECTION("before it was accepted") {
    peer.reset();
    if (refusal([&] { event.request->accept(server.party.qp); })) {
      CHECK(server.party.qp.state() == QpState::init);
      return;
    }
  }
  SECTION("before it made this side ready") {
    event.request->accept(server.party.qp);
    CHECK(peer.receive(24).size() == 24);
    check_quiet(server.channel);
    peer.shutdown();
  }
  CHECK(next_event(server.channel, CmEventType::connect_error).status == Errc::connection_lost);
}

TEST_CASE("CM tells of established connections at once where nobody makes this side ready") {
  CmServer server;
  RawTcp peer = RawTcp::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  next_event(server.channel, CmEventType::established);
}

TEST_CASE("CM drops what is not MPA, in silence, and goes on") {
  CmServer server({}, {.request_timeout = 100ms});
  RawTcp garbage = RawTcp::connect(server.listener.local_address());
  REQUIRE(garbage.send(text("GET /")));
  RawTcp silent = RawTcp::connect(server.listener.local_address());
  CHECK(garbage.ending() != Ending::none);
  CHECK(silent.ending() != Ending::none);
  CHECK_FALSE(server.channel.get_event(0s));
  RawTcp peer = RawTcp::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  server.request();
}

TEST_CASE("CM keeps only so many requests and rejects the others") {
  CmServer server({}, {.max_requests = 2});
  std::vector<RawTcp> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(RawTcp::connect(server.listener.local_address()));
    REQUIRE(peers.back().send(to_bytes(MpaFrame{})));
  }
  std::array<pollfd, 3> watched;
  for (size_t i = 0; i < 3; ++i) watched[i] = {peers[i].descriptor(), POLLIN, 0};
  REQUIRE(::poll(watched.data(), watched.size(), 30000) == 1);
  server.request();
  server.request();
  CHECK(server.device.counter("mpa_rejects") >= 1);
  peers.push_back(RawTcp::connect(server.listener.local_address()));
  REQUIRE(peers.back().send(to_bytes(MpaFrame{})));
  server.request();
}

TEST_CASE("CM tells every id of a device that it goes away") {
  CmCouple couple;
  couple.server.device.remove();
  std::multimap<CmEventType, uint64_t> told;
  for (int i = 0; i < 2; ++i) {
    const CmEvent event = next_event(couple.server.channel, CmEventType::device_removal);
    told.emplace(event.type, event.id);
  }
  CHECK(told.size() == 2);
  check_quiet(couple.server.channel);
  check_quiet(couple.client.channel);
}

TEST_CASE("CM refuses calls that do not fit what was done before") {
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  Party datagrams(device);
  RcParty stranger(server.device);
  CHECK(refusal([&] { client.id->connect(client.party.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { client.id->accept(client.party.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { client.id->reject(); }) == Errc::invalid_state);
  CHECK(refusal([&] { client.id->disconnect(); }) == Errc::invalid_state);
  CHECK(refusal([&] { client.id->resolve_route(); }) == Errc::invalid_state);
  CHECK(refusal([&] { server.listener.listen(); }) == Errc::invalid_state);
  CHECK(refusal([&] { server.listener.resolve_addr(Address::parse("127.0.0.1:1")); }) ==
        Errc::invalid_state);
  CHECK(refusal([&] { client.id->bind(Address::parse("127.0.0.9")); }) == Errc::invalid_argument);
  client.resolve(server.listener.local_address());
  CHECK(refusal([&] { client.id->connect(datagrams.qp); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { client.id->connect(stranger.qp); }) == Errc::invalid_argument);
  CHECK(refusal([&] { client.id->connect(client.party.qp, {.revision = 9}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { client.id->listen(); }) == Errc::invalid_state);
  client.party.qp.modify(QpState::error);
  CHECK(refusal([&] { client.id->connect(client.party.qp); }) == Errc::invalid_state);
  client.party.qp.modify(QpState::reset);
  client.party.qp.modify(QpState::init);
  client.id->connect(client.party.qp);
  CHECK(refusal([&] { client.id->connect(client.party.qp); }) == Errc::invalid_state);
  CmEvent event = server.request();
  const std::vector<std::byte> excess(509);
  CHECK(refusal([&] { event.request->reject(excess); }) == Errc::invalid_argument);
  CHECK(refusal([&] { event.request->accept(server.party.qp, {.private_data = excess}); }) ==
        Errc::invalid_argument);
  event.request->accept(server.party.qp);
  CHECK(refusal([&] { event.request->accept(server.party.qp); }) == Errc::invalid_state);
  next_event(client.channel, CmEventType::established);
}

TEST_CASE("CM listens on ports in use for one only") {
  CmServer server;
  CmId second(server.device, server.channel);
  second.bind(server.listener.local_address());
  CHECK(refusal([&] { second.listen(); }) == Errc::address_in_use);
}

TEST_CASE("CM serves fifty connections at once from one channel on each side") {
  constexpr size_t kPeers = 50;
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmEventChannel channel;
  std::deque<RcParty> clients;
  std::deque<RcParty> servers;
  std::deque<CmId> ids;
  std::deque<CmId> accepted;
  for (size_t i = 0; i < kPeers; ++i) {
    clients.emplace_back(device, RcOptions{.memory = 256});
    servers.emplace_back(server.device, RcOptions{.memory = 256});
    ids.emplace_back(device, channel, i);
    ids.back().resolve_addr(server.listener.local_address());
    next_event(channel, CmEventType::addr_resolved);
    ids.back().connect(clients.back().qp, {.timeout = kPatience});
  }
  size_t established = 0;
  while (established < kPeers) {
    std::optional<CmEvent> event = server.channel.get_event(kPatience);
    REQUIRE(event);
    if (event->type == CmEventType::connect_request) {
      accepted.push_back(std::move(*event->request));
      accepted.back().accept(servers[accepted.size() - 1].qp);
    } else {
      REQUIRE(event->type == CmEventType::established);
      ++established;
    }
  }
  std::vector<bool> seen(kPeers);
  for (size_t i = 0; i < kPeers; ++i)
    seen[next_event(channel, CmEventType::established).context] = true;
  CHECK(std::count(seen.begin(), seen.end(), true) == kPeers);
  for (CmId& id : ids) id.disconnect();
  for (size_t i = 0; i < kPeers; ++i) next_event(channel, CmEventType::disconnected);
  for (size_t i = 0; i < kPeers; ++i) next_event(server.channel, CmEventType::disconnected);
}

TEST_CASE("CM works in manual mode, stepped by whoever waits for events") {
  const DeviceOptions manual{.progress = Progress::manual};
  CmServer server(manual);
  CmClient client(server.device);
  client.connect(server.listener.local_address());
  server.request().request->accept(server.party.qp);
  // That id went, and with it its end of the connection.
  std::optional<CmEvent> event = client.channel.get_event(kPatience);
  REQUIRE(event);
  if (event->type == CmEventType::established)
    next_event(client.channel, CmEventType::disconnected);

  RcParty second(server.device);
  RcParty taker(server.device);
  CmId id(server.device, client.channel);
  id.resolve_addr(server.listener.local_address());
  next_event(client.channel, CmEventType::addr_resolved);
  id.connect(second.qp);
  CmEvent request = server.request();
  request.request->accept(taker.qp);
  next_event(client.channel, CmEventType::established);
  next_event(server.channel, CmEventType::established);
  check_exchange(taker, second);
  id.disconnect();
  next_event(client.channel, CmEventType::disconnected);
  next_event(server.channel, CmEventType::disconnected);
}

TEST_CASE("CM channels poll readable while events wait") {
  CmServer server;
  pollfd watched{server.channel.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  RawTcp peer = RawTcp::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CHECK(::poll(&watched, 1, 30000) == 1);
  server.request();
  CHECK(::poll(&watched, 1, 0) == 0);
}

TEST_CASE("CM ends a connection whose peer never closes after the timeout") {
  CmServer server;
  RawTcp peer = RawTcp::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  next_event(server.channel, CmEventType::established);
  event.request->disconnect({.timeout = 30ms});
  next_event(server.channel, CmEventType::disconnected);
}

TEST_CASE("CM ids, channels, queue pairs and devices may go in any order, in any state") {
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  const int until = GENERATE(range(0, 7));
  CAPTURE(until);
  auto device = std::make_optional(Device::open("127.0.0.1", {.progress = progress}));
  auto a = std::make_optional<RcParty>(*device);
  auto b = std::make_optional<RcParty>(*device);
  auto channel = std::make_optional<CmEventChannel>();
  auto listener = std::make_optional<CmId>(*device, *channel);
  auto id = std::make_optional<CmId>(*device, *channel);
  std::optional<CmId> accepted;
  if (until > 0) listener->listen();
  if (until > 1) {
    id->resolve_addr(listener->local_address());
    next_event(*channel, CmEventType::addr_resolved);
  }
  if (until > 2) id->connect(a->qp);
  if (until > 3)
    accepted.emplace(std::move(*next_event(*channel, CmEventType::connect_request).request));
  if (until > 4) accepted->accept(b->qp);
  if (until > 5) {
    next_event(*channel, CmEventType::established);
    next_event(*channel, CmEventType::established);
  }
  SECTION("the device first, the channel last") {
    device.reset();
    a.reset();
    listener.reset();
    id.reset();
    accepted.reset();
    b.reset();
    channel.reset();
  }
  SECTION("the channel first, the device last") {
    channel.reset();
    accepted.reset();
    id.reset();
    listener.reset();
    b.reset();
    a.reset();
    device.reset();
  }
  SECTION("the queue pairs first, then the ids") {
    a.reset();
    b.reset();
    device.reset();
    accepted.reset();
    listener.reset();
    id.reset();
    channel.reset();
  }
  SECTION("the listener first") {
    listener.reset();
    device.reset();
    id.reset();
    channel.reset();
    b.reset();
    accepted.reset();
    a.reset();
  }
}

}  // namespace diwarp::test
