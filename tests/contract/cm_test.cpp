// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <deque>

#include "contract/cm.h"

/// The connection manager: how connections come to be, and fail to.
namespace diwarp::contract {

namespace {

/// A request that was made with these options, told to the server.
CmEvent request_with(CmClient& client, CmServer& server, const ConnectOptions& options) {
  client.connect(server.listener.local_address(), options);
  return server.request();
}

}  // namespace

TEST_CASE("resolve_addr and resolve_route each tell their outcome by an event of the id") {
  CmServer server;
  CmClient client;
  client.id->resolve_addr(server.listener.local_address());
  const CmEvent address = next_event(client.channel, CmEventType::addr_resolved);
  CHECK(address.id == client.id->number());
  CHECK(address.context == CmClient::kContext);
  CHECK_FALSE(address.status);
  client.id->resolve_route();
  CHECK(next_event(client.channel, CmEventType::route_resolved).id == client.id->number());
}

TEST_CASE("The route need not be resolved") {
  CmServer server;
  CmClient client;
  client.id->resolve_addr(server.listener.local_address());
  next_event(client.channel, CmEventType::addr_resolved);
  client.id->connect(client.party.qp, {.timeout = kPatience});
  CmEvent request = server.request();
  request.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
}

TEST_CASE("An address of a family that the device does not have is refused") {
  CmClient client;
  const bool has_ipv4 = client.device.address().family() == AddressFamily::ipv4;
  const Address other = Address::loopback(has_ipv4 ? AddressFamily::ipv6 : AddressFamily::ipv4, 5);
  CHECK(refusal([&] { client.id->resolve_addr(other); }) == Errc::invalid_destination);
}

TEST_CASE("A request is told with its private data, its depths and an id to answer with") {
  CmServer server;
  CmClient client;
  const CmEvent event =
      request_with(client, server, {.private_data = text("question"), .ord = 5, .ird = 3});
  CHECK(event.listener == server.listener.number());
  CHECK(event.context == CmServer::kContext);
  CHECK(event.private_data == text("question"));
  CHECK(event.ord == 3);
  CHECK(event.ird == 5);
  REQUIRE(event.request);
  CHECK(event.request->number() == event.id);
  CHECK(event.request->context() == CmServer::kContext);
  CHECK(event.request->local_address() == server.listener.local_address());
}

TEST_CASE("Both sides are told when they are established, the initiator with the reply's data") {
  CmServer server;
  CmClient client;
  CmEvent event = request_with(client, server, {});
  event.request->set_context(8);
  event.request->accept(server.party.qp, {.private_data = text("answer")});
  const CmEvent at_client = next_event(client.channel, CmEventType::established);
  CHECK(at_client.id == client.id->number());
  CHECK(at_client.private_data == text("answer"));
  CHECK_FALSE(at_client.status);
  CHECK(client.party.qp.state() == QpState::rts);
  const CmEvent at_server = next_event(server.channel, CmEventType::established);
  CHECK(at_server.id == event.id);
  CHECK(at_server.context == 8);
  CHECK(server.party.qp.state() == QpState::rts);
}

TEST_CASE("Both sides are told the depths that were agreed") {
  CmServer server;
  CmClient client;
  CmEvent event = request_with(client, server, {.ord = 5, .ird = 3});
  event.request->accept(server.party.qp, {.ord = 2, .ird = 4});
  const CmEvent at_client = next_event(client.channel, CmEventType::established);
  CHECK(at_client.ord <= 5);
  CHECK(at_client.ord >= 4);  // a device may answer more Reads than it was asked to
  CHECK(at_client.ird >= 2);
  const CmEvent at_server = next_event(server.channel, CmEventType::established);
  CHECK(at_server.ord == 2);
  CHECK(at_server.ird >= 4);
  CHECK(client.party.qp.query().ord == at_client.ord);
  CHECK(server.party.qp.query().ord == at_server.ord);
}

TEST_CASE("Ids tell both addresses of their connection") {
  CmCouple couple;
  CHECK(couple.client.id->peer_address() == couple.server.listener.local_address());
  CHECK(couple.client.id->local_address() == couple.accepted->peer_address());
  CHECK(couple.accepted->local_address() == couple.server.listener.local_address());
}

TEST_CASE("Over a connection of ids messages pass both ways, the acceptor first") {
  CmCouple couple;
  check_message(couple.server.party, couple.client.party, 1);
  check_message(couple.client.party, couple.server.party, 2);
}

TEST_CASE("A reject is told with its private data, and the queue pair may connect again") {
  CmServer server;
  CmClient client;
  request_with(client, server, {}).request->reject(text("full"));
  const CmEvent event = next_event(client.channel, CmEventType::rejected);
  CHECK(event.id == client.id->number());
  CHECK(event.status == Errc::rejected);
  CHECK(event.private_data == text("full"));
  CHECK_FALSE(event.message.empty());
  CHECK(client.party.qp.state() == QpState::init);
  client.id.emplace(client.device, client.channel, CmClient::kContext);
  CmEvent request = request_with(client, server, {});
  request.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
}

TEST_CASE("An id of a request that is destroyed unanswered rejects it") {
  CmServer server;
  CmClient client;
  request_with(client, server, {});
  next_event(client.channel, CmEventType::rejected);
}

TEST_CASE("A connection to a port where nobody listens is told as rejected") {
  CmClient client;
  const Address nobody = [] {
    const CmServer gone;
    return gone.listener.local_address();
  }();
  client.connect(nobody);
  const CmEvent event = next_event(client.channel, CmEventType::rejected);
  CHECK(event.status);
  CHECK(client.party.qp.state() == QpState::init);
}

TEST_CASE("An id is bound to an address of its device, on a free port, or is refused") {
  const Device device = open_device();
  CmEventChannel channel;
  CmId id(device, channel);
  CHECK(refusal([&] { id.bind(Address::parse("198.51.100.7:5")); }) == Errc::invalid_argument);
  id.bind(device.address());
  id.listen();
  CHECK(id.local_address().host() == device.address().host());
  CHECK(id.local_address().port() != 0);
}

TEST_CASE("A port that another listening id has is refused with address_in_use") {
  CmServer server;
  CmId second(server.device, server.channel);
  second.bind(server.listener.local_address());
  CHECK(refusal([&] { second.listen(); }) == Errc::address_in_use);
}

TEST_CASE("An id connects to a Listener as to a listening id") {
  const Device device = open_peer();
  Party server(device);
  Listener listener(device, 0);
  CmClient client;
  client.connect(listener.address());
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  request->accept(server.qp);
  next_event(client.channel, CmEventType::established);
  check_message(client.party, server);
}

TEST_CASE("An id takes one queue pair, and one that it refuses can be connected by another id") {
  CmServer server;
  CmClient client;
  client.id->resolve_addr(server.listener.local_address());
  next_event(client.channel, CmEventType::addr_resolved);
  client.id->connect(client.party.qp, {.timeout = kPatience});
  Party other(client.device);
  CHECK(refusal([&] { client.id->connect(other.qp); }) == Errc::invalid_state);
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
  check_message(client.party, server.party);
  Party peer(server.device);
  join(other.qp, peer.qp, server.device);
  check_message(other, peer);
}

TEST_CASE("Calls that do not fit what was done before are refused with invalid_state") {
  CmServer server;
  CmClient client;
  CmId& id = *client.id;
  CHECK(refusal([&] { id.connect(client.party.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { id.accept(client.party.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { id.reject(); }) == Errc::invalid_state);
  CHECK(refusal([&] { id.disconnect(); }) == Errc::invalid_state);
  CHECK(refusal([&] { id.resolve_route(); }) == Errc::invalid_state);
  CHECK(refusal([&] { server.listener.listen(); }) == Errc::invalid_state);
  CHECK(refusal([&] { server.listener.connect(server.party.qp); }) == Errc::invalid_state);
  client.connect(server.listener.local_address());
  CHECK(refusal([&] { id.connect(client.party.qp); }) == Errc::invalid_state);
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  CHECK(refusal([&] { event.request->accept(server.party.qp); }) == Errc::invalid_state);
  next_event(client.channel, CmEventType::established);
}

TEST_CASE("A queue pair of another device than its id's is refused with invalid_argument") {
  CmServer server;
  CmClient client;
  const Device second = open_device();
  Party stranger(second);
  client.resolve(server.listener.local_address());
  CHECK(refusal([&] { client.id->connect(stranger.qp); }) == Errc::invalid_argument);
  client.id->connect(client.party.qp, {.timeout = kPatience});
  CmEvent event = server.request();
  CHECK(refusal([&] { event.request->accept(stranger.qp); }) == Errc::invalid_argument);
  event.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
}

TEST_CASE("A channel gives nothing after its timeout, and its descriptor polls readable") {
  CmServer server;
  CHECK_FALSE(server.channel.get_event(Duration::zero()));
  CHECK_FALSE(server.channel.get_event(kMoment));
  CmClient client;
  client.connect(server.listener.local_address());
  pollfd watched{server.channel.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 30'000) == 1);
  CHECK(server.channel.get_event(kPatience));
}

TEST_CASE("One channel serves many ids, each with a number of its own") {
  constexpr size_t kPeers = 10;
  CmServer server;
  const Device device = open_device();
  CmEventChannel channel;
  std::deque<Party> clients;
  std::deque<Party> servers;
  std::deque<CmId> ids;
  std::deque<CmId> accepted;
  for (size_t i = 0; i < kPeers; ++i) {
    clients.emplace_back(device, PartyOptions{.memory = 4096});
    servers.emplace_back(server.device, PartyOptions{.memory = 4096});
    ids.emplace_back(device, channel, i);
    ids.back().resolve_addr(server.listener.local_address());
    CHECK(next_event(channel, CmEventType::addr_resolved).id == ids.back().number());
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
  std::vector<int> seen(kPeers);
  for (size_t i = 0; i < kPeers; ++i)
    ++seen.at(next_event(channel, CmEventType::established).context);
  for (const int count : seen) CHECK(count == 1);
}

// --- Moving to another channel.

TEST_CASE("An id that moves to another channel takes its unfetched events along, in order") {
  CmServer server;
  CmClient client;
  CmEventChannel other;
  client.id->resolve_addr(server.listener.local_address());
  next_event(client.channel, CmEventType::addr_resolved);
  client.id->resolve_route();
  next_event(client.channel, CmEventType::route_resolved);
  client.id->connect(client.party.qp, {.timeout = kPatience});
  CmEvent request = server.request();
  request.request->accept(server.party.qp);
  next_event(server.channel, CmEventType::established);
  CHECK(client.party.qp.state() != QpState::error);
  // Both of these wait in the first channel, or come to the second.
  request.request->disconnect({.timeout = kPatience});
  client.id->migrate(other);
  CHECK(next_event(other, CmEventType::established).id == client.id->number());
  CHECK(next_event(other, CmEventType::disconnected).context == CmClient::kContext);
  CHECK_FALSE(client.channel.get_event(kMoment));
  CHECK_FALSE(other.get_event(kMoment));
}

TEST_CASE("A listener that moves to another channel takes requests along, and later ones follow") {
  CmServer server;
  CmClient first, second;
  CmEventChannel other;
  first.connect(server.listener.local_address());
  {
    // The request is there when another event of the channel is, which is asked for after it.
    pollfd watched{server.channel.descriptor(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 30000) == 1);
  }
  server.listener.migrate(other);
  CmEvent request = next_event(other, CmEventType::connect_request);
  request.request->accept(server.party.qp);
  next_event(first.channel, CmEventType::established);
  CHECK(next_event(other, CmEventType::established).id == request.id);  // its id moved as well
  second.connect(server.listener.local_address());
  CHECK(next_event(other, CmEventType::connect_request).listener == server.listener.number());
  CHECK_FALSE(server.channel.get_event(kMoment));
}

TEST_CASE("An id moves to its own channel without a change, and leaves other ids' events behind") {
  CmServer server;
  CmClient client;
  CmEventChannel other;
  CmId stays(client.device, client.channel, 1);
  client.id->resolve_addr(server.listener.local_address());
  next_event(client.channel, CmEventType::addr_resolved);
  stays.resolve_addr(server.listener.local_address());
  client.id->migrate(client.channel);
  client.id->migrate(other);
  CHECK(next_event(client.channel, CmEventType::addr_resolved).id == stays.number());
  client.id->resolve_route();
  CHECK(next_event(other, CmEventType::route_resolved).id == client.id->number());
}

}  // namespace diwarp::contract
