// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "stack/cm_support.h"
#include "stack/full_listener.h"

/// The connection manager: its ids and channels, many of them, in every state.
namespace diwarp::test {

TEST_CASE("CM keeps only so many requests and rejects the others") {
  CmServer server({}, {.max_requests = 2});
  std::vector<RawStream> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(RawStream::connect(server.listener.local_address()));
    REQUIRE(peers.back().send(to_bytes(MpaFrame{})));
  }
  std::array<pollfd, 3> watched;
  for (size_t i = 0; i < 3; ++i) watched[i] = {peers[i].descriptor(), POLLIN, 0};
  REQUIRE(::poll(watched.data(), watched.size(), 30000) == 1);
  server.request();
  server.request();
  CHECK(server.device.counter("mpa_rejects") >= 1);
  peers.push_back(RawStream::connect(server.listener.local_address()));
  REQUIRE(peers.back().send(to_bytes(MpaFrame{})));
  server.request();
}

TEST_CASE("CM: requests of one address that nobody fetches do not keep out another address") {
  CmServer server({}, {.max_requests = FullListener::kRequests});
  const FullListener full(server.listener.local_address());
  size_t found = 0;
  for (size_t i = 0; i < FullListener::kRequests; ++i)
    found += same(server.request().private_data, text("honest"));
  CHECK(found == 1);
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

TEST_CASE("CM works in manual mode, stepped by the thread that waits for events") {
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
  check_one_way(taker, second);
  id.disconnect();
  next_event(client.channel, CmEventType::disconnected);
  next_event(server.channel, CmEventType::disconnected);
}

TEST_CASE("CM channels poll readable while events wait") {
  CmServer server;
  pollfd watched{server.channel.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 0) == 0);
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CHECK(::poll(&watched, 1, 30000) == 1);
  server.request();
  CHECK(::poll(&watched, 1, 0) == 0);
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
