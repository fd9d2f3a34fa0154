// SPDX-License-Identifier: Apache-2.0
#include "stack/cm_support.h"

/// The connection manager: the outcome of connections, as events.
namespace diwarp::test {

namespace {

/// An MPA request of revision 2 that asks for the peer-to-peer model (RFC 6581).
const auto kPeerToPeerRequest = hex("4d504120494420526571204672616d65 50020004 c001c001");

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

  check_one_way(server.party, client.party);
  check_one_way(client.party, server.party);
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

TEST_CASE("CM leaves a queue pair's next connection alone when the id of the last one goes") {
  CmCouple couple;
  RcParty& reused = couple.client.party;
  reused.qp.modify(QpState::reset);
  next_event(couple.client.channel, CmEventType::disconnected);
  reused.qp.modify(QpState::init);
  RcParty other(couple.server.device);
  connect(reused, other, couple.server.device);
  SECTION("at once") { couple.client.id.reset(); }
  SECTION("after a disconnect() that comes too late") {
    couple.client.id->disconnect({.timeout = 0ms});
    couple.client.id.reset();
  }
  CHECK(reused.qp.state() == QpState::rts);
  check_one_way(other, reused);
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
    CHECK_FALSE(event.message.empty());
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
    RawStream peer = listener.accept();
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

TEST_CASE("CM tells that an address cannot be reached", "[kernel]") {
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

TEST_CASE("CM refuses to accept from a peer that vanished, or tells") {
  CmServer server;
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(kPeerToPeerRequest));
  CmEvent event = server.request();
  peer.reset();
  if (refusal([&] { event.request->accept(server.party.qp); })) {
    CHECK(server.party.qp.state() == QpState::init);
    return;
  }
  CHECK(next_event(server.channel, CmEventType::connect_error).status == Errc::connection_lost);
}

TEST_CASE("CM tells of no connection before the peer has made this side ready") {
  CmServer server;
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(kPeerToPeerRequest));
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  CHECK(peer.receive(24).size() == 24);
  check_quiet(server.channel);
  peer.shutdown();
  CHECK(next_event(server.channel, CmEventType::connect_error).status == Errc::connection_lost);
}

TEST_CASE("CM tells of established connections at once where nobody makes this side ready") {
  CmServer server;
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  next_event(server.channel, CmEventType::established);
}

TEST_CASE("CM drops what is not MPA, in silence, and goes on") {
  CmServer server({}, {.request_timeout = 100ms});
  RawStream garbage = RawStream::connect(server.listener.local_address());
  REQUIRE(garbage.send(text("GET /")));
  RawStream silent = RawStream::connect(server.listener.local_address());
  CHECK(garbage.ending() != Ending::none);
  CHECK(silent.ending() != Ending::none);
  CHECK_FALSE(server.channel.get_event(0s));
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  server.request();
}

TEST_CASE("CM ends a connection whose peer never closes after the timeout") {
  CmServer server;
  RawStream peer = RawStream::connect(server.listener.local_address());
  REQUIRE(peer.send(to_bytes(MpaFrame{})));
  CmEvent event = server.request();
  event.request->accept(server.party.qp);
  next_event(server.channel, CmEventType::established);
  event.request->disconnect({.timeout = 30ms});
  next_event(server.channel, CmEventType::disconnected);
}

}  // namespace diwarp::test
