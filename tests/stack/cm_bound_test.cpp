// SPDX-License-Identifier: Apache-2.0
#include "stack/cm_support.h"
#include "stack/ipv6.h"

/// The addresses that ids of the connection manager are bound to, and moves between channels under
/// load.
namespace diwarp::test {

namespace {

/// A port that was free a moment ago.
uint16_t free_port() {
  const RawListener listener;
  return listener.address().port();
}

}  // namespace

TEST_CASE("CM: a connection comes from the address that its id was bound to") {
  CmServer server;
  const Device everywhere = Device::open("0.0.0.0");
  CmClient client(everywhere);
  client.id->bind(Address::parse("127.0.0.5"));
  client.connect(server.listener.local_address());
  CHECK(client.id->local_address().with_port(0) == Address::parse("127.0.0.5"));
  CmEvent event = server.request();
  CHECK(event.request->peer_address().with_port(0) == Address::parse("127.0.0.5"));
  event.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
  CHECK(client.id->local_address() == event.request->peer_address());
  check_one_way(client.party, server.party);
}

TEST_CASE("CM: a connection comes from the port that its id was bound to") {
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  const Address source = Address::parse("127.0.0.1", free_port());
  client.id->bind(source);
  client.connect(server.listener.local_address());
  CHECK(client.id->local_address() == source);
  CmEvent event = server.request();
  CHECK(event.request->peer_address() == source);
  event.request->accept(server.party.qp);
  next_event(client.channel, CmEventType::established);
  CHECK(client.id->local_address() == source);
}

TEST_CASE("CM: a port that is another socket's is told as an error of the connection") {
  CmServer server;
  const RawListener holder;
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  client.id->bind(holder.address());
  client.connect(server.listener.local_address());
  CHECK(next_event(client.channel, CmEventType::connect_error).status == std::errc::address_in_use);
}

TEST_CASE("CM: a device on all addresses listens on loopback addresses, and connects to them") {
  const Device everywhere = Device::open("0.0.0.0");
  RcParty acceptor(everywhere);
  CmEventChannel channel;
  CmId listener(everywhere, channel);
  listener.bind(Address::parse("127.0.0.6"));
  listener.listen();
  CHECK(listener.local_address().with_port(0) == Address::parse("127.0.0.6"));
  CmClient client(everywhere);
  client.connect(listener.local_address());
  CmEvent event = next_event(channel, CmEventType::connect_request);
  CHECK(event.request->peer_address().is_loopback());
  event.request->accept(acceptor.qp);
  next_event(client.channel, CmEventType::established);
  check_one_way(client.party, acceptor);
  // Only there: the port is free on other addresses.
  const Device other = Device::open("127.0.0.1");
  CmClient stranger(other);
  stranger.connect(Address::parse("127.0.0.1", listener.local_address().port()));
  next_event(stranger.channel, CmEventType::rejected);
}

TEST_CASE("CM: a device on all IPv6 addresses is bound to IPv4 addresses as well") {
  SKIP_WITHOUT_IPV6();
  const Device everywhere = Device::open("::");
  for (const char* address : {"127.0.0.1", "::1"}) {
    CAPTURE(address);
    RcParty acceptor(everywhere);
    CmEventChannel channel;
    CmId listener(everywhere, channel);
    listener.bind(Address::parse(address));
    listener.listen();
    CmClient client(everywhere);
    client.id->bind(Address::parse(address));
    client.connect(listener.local_address());
    CmEvent event = next_event(channel, CmEventType::connect_request);
    CHECK(event.request->peer_address().with_port(0) == Address::parse(address));
    event.request->accept(acceptor.qp);
    next_event(client.channel, CmEventType::established);
    check_one_way(client.party, acceptor);
  }
}

TEST_CASE("CM: an address that the device does not have is refused by bind") {
  const Device device = Device::open("127.0.0.1");
  CmEventChannel channel;
  for (const char* address : {"127.0.0.2", "::1", "::"}) {
    CmId id(device, channel);
    CHECK(refusal([&] { id.bind(Address::parse(address)); }) == Errc::invalid_argument);
  }
  const Device everywhere = Device::open("0.0.0.0");
  CmId id(everywhere, channel);
  CHECK(refusal([&] { id.bind(Address::parse("::1")); }) == Errc::invalid_argument);
}

TEST_CASE("CM: ids that move between channels while they are connected lose no event") {
  constexpr size_t kIds = 20;
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  std::array<CmEventChannel, 2> channels;
  std::vector<std::unique_ptr<RcParty>> parties;
  std::vector<std::unique_ptr<CmId>> ids;
  for (size_t i = 0; i < kIds; ++i) {
    parties.push_back(std::make_unique<RcParty>(device));
    ids.push_back(std::make_unique<CmId>(device, channels[0]));
    ids[i]->resolve_addr(server.listener.local_address());
    next_event(channels[0], CmEventType::addr_resolved);
  }
  std::atomic<bool> stop{false};
  std::thread mover([&] {
    for (size_t round = 0; !stop; ++round)
      for (const auto& id : ids) id->migrate(channels[round % 2]);
  });
  for (size_t i = 0; i < kIds; ++i) ids[i]->connect(parties[i]->qp);
  std::vector<int> rejected(kIds);
  size_t seen = 0, requests = 0;
  const Time deadline = std::chrono::steady_clock::now() + kPatience;
  while ((seen < kIds || requests < kIds) && std::chrono::steady_clock::now() < deadline) {
    while (auto request = server.channel.get_event(Duration::zero())) ++requests;  // and dropped
    for (CmEventChannel& channel : channels) {
      while (const auto event = channel.get_event(Duration::zero())) {
        for (size_t i = 0; i < kIds; ++i) rejected[i] += ids[i]->number() == event->id;
        ++seen;
      }
    }
    std::this_thread::sleep_for(1ms);
  }
  stop = true;
  mover.join();
  CHECK(rejected == std::vector<int>(kIds, 1));
  for (CmEventChannel& channel : channels) check_quiet(channel);
}

}  // namespace diwarp::test
