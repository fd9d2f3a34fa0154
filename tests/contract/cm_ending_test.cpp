// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>

#include "contract/cm.h"

/// The connection manager: how connections end, and ids go.
namespace diwarp::contract {

namespace {

/// Both sides are told once that the connection has ended.
void check_both_told(CmCouple& couple) {
  CHECK(next_event(couple.client.channel, CmEventType::disconnected).id ==
        couple.client.id->number());
  CHECK(next_event(couple.server.channel, CmEventType::disconnected).id ==
        couple.accepted->number());
  CHECK_FALSE(couple.client.channel.get_event(kMoment));
  CHECK_FALSE(couple.server.channel.get_event(Duration::zero()));
}

}  // namespace

TEST_CASE("A disconnect by the side that connected is told once to both sides") {
  CmCouple couple;
  couple.client.id->disconnect();
  check_both_told(couple);
  CHECK(couple.client.party.qp.state() == QpState::error);
  CHECK(couple.server.party.qp.state() == QpState::error);
}

TEST_CASE("A disconnect by the side that accepted is told once to both sides") {
  CmCouple couple;
  couple.accepted->disconnect();
  check_both_told(couple);
}

TEST_CASE("A disconnect by both sides is told once to both") {
  CmCouple couple;
  couple.client.id->disconnect();
  couple.accepted->disconnect();
  check_both_told(couple);
}

TEST_CASE("A disconnect of an id lets out what was posted") {
  CmCouple couple;
  Party& a = couple.client.party;
  Party& b = couple.server.party;
  b.post_receives(20, 1000);
  a.fill(0, 20'000, 1);
  for (uint64_t i = 0; i < 20; ++i) REQUIRE_FALSE(a.send(i * 1000, 1000, i));
  couple.client.id->disconnect({.timeout = kPatience});
  for (uint64_t i = 0; i < 20; ++i) CHECK(next_good(b.recv_cq).wr_id == i);
  CHECK(b.holds(0, 20'000, 1));
  check_both_told(couple);
}

TEST_CASE("A disconnect after the end does nothing") {
  CmCouple couple;
  couple.client.id->disconnect();
  check_both_told(couple);
  couple.client.id->disconnect();
  couple.accepted->disconnect();
  CHECK_FALSE(couple.client.channel.get_event(kMoment));
  CHECK_FALSE(couple.server.channel.get_event(kMoment));
}

TEST_CASE("disconnected is told to both sides when a queue pair is moved to error") {
  CmCouple couple;
  couple.client.party.qp.modify(QpState::error);
  check_both_told(couple);
}

TEST_CASE("disconnected is told to both sides when a queue pair is reset") {
  CmCouple couple;
  couple.client.party.qp.modify(QpState::reset);
  check_both_told(couple);
}

TEST_CASE("disconnected is told when the peer's queue pair ended the connection in order") {
  CmCouple couple;
  couple.server.party.qp.disconnect({.timeout = kPatience});
  check_both_told(couple);
}

TEST_CASE("disconnected is told when a Write was refused") {
  CmCouple couple;
  couple.client.party.fill(0, 10, 1);
  const RemoteMemory nothing{couple.server.party.mr->rkey() ^ 0x5A5A5A00, 0};
  REQUIRE_FALSE(couple.client.party.write(0, 10, nothing));
  check_both_told(couple);
  CHECK(couple.server.party.is_zero(0, 10));
}

TEST_CASE("An id that is destroyed ends its connection, and the peer's id is told") {
  CmCouple couple;
  couple.client.id.reset();
  CHECK(couple.client.party.qp.state() == QpState::error);
  next_event(couple.server.channel, CmEventType::disconnected);
  CHECK_FALSE(couple.client.channel.get_event(kMoment));
}

TEST_CASE("An id that is destroyed takes its events with it") {
  CmServer server;
  CmClient client;
  client.id->resolve_addr(server.listener.local_address());
  client.id.reset();
  CHECK_FALSE(client.channel.get_event(kMoment));
}

TEST_CASE("A listening id that is destroyed rejects the requests that nobody fetched") {
  CmClient client;
  {
    CmServer server;
    client.connect(server.listener.local_address());
    pollfd watched{server.channel.descriptor(), POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 30'000) == 1);
  }
  next_event(client.channel, CmEventType::rejected);
}

TEST_CASE("An id that was accepted works on when its listener is destroyed") {
  CmClient client;
  Device peer = open_peer();
  Party party(peer);
  CmEventChannel channel;
  std::optional<CmId> listener(std::in_place, peer, channel);
  listener->listen();
  client.connect(listener->local_address());
  CmEvent event = next_event(channel, CmEventType::connect_request);
  listener.reset();
  event.request->accept(party.qp);
  next_event(client.channel, CmEventType::established);
  next_event(channel, CmEventType::established);
  check_message(client.party, party);
}

TEST_CASE("The queue pair of an id that ended connects again with another id") {
  CmCouple couple;
  couple.client.id->disconnect();
  check_both_told(couple);
  for (Party* party : {&couple.client.party, &couple.server.party}) {
    party->qp.modify(QpState::reset);
    party->qp.modify(QpState::init);
  }
  couple.client.id.emplace(couple.client.device, couple.client.channel, CmClient::kContext);
  couple.client.connect(couple.server.listener.local_address());
  couple.accepted.emplace(std::move(*couple.server.request().request));
  couple.accepted->accept(couple.server.party.qp);
  next_event(couple.client.channel, CmEventType::established);
  next_event(couple.server.channel, CmEventType::established);
  check_message(couple.client.party, couple.server.party);
}

TEST_CASE("Every id of a device is told that the device goes away, and the device works on") {
  CmCouple couple;
  couple.server.device.remove();
  // The listener's and the one that was accepted.
  std::vector<uint64_t> told;
  for (int i = 0; i < 2; ++i)
    told.push_back(next_event(couple.server.channel, CmEventType::device_removal).id);
  std::sort(told.begin(), told.end());
  CHECK(told == std::vector<uint64_t>{couple.server.listener.number(), couple.accepted->number()});
  CHECK_FALSE(couple.client.channel.get_event(kMoment));
  check_message(couple.client.party, couple.server.party);
}

}  // namespace diwarp::contract
