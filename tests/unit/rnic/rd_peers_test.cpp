// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <new>
#include <string>
#include <vector>

#include "rnic/datagram/rd/rd_peer.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

namespace {

/// A queue pair as far as its peers need one.
struct Owner final : RdPeerOwner {
  void on_peer_timer(RdPeer&, Time) override {}
  void add_timer_place() override {
    if (no_memory) throw std::bad_alloc();
    ++timer_places;
  }
  void remove_timer_place() override { --timer_places; }
  bool forget_for(const Address& newcomer, Time now) override {
    RdPeer* const unused = peers->find_unused(1s, newcomer, now);
    if (unused != nullptr) peers->erase(*unused);
    return unused != nullptr;
  }

  RdPeers* peers = nullptr;
  size_t timer_places = 0;
  bool no_memory = false;
};

provider::QueuePairInit with_peers(uint32_t peers) {
  provider::QueuePairInit init;
  init.type = QpType::rd;
  init.reliable.max_peers = peers;
  return init;
}

Address at(const char* host, uint16_t port = 7000) { return Address::parse(host, port); }

struct Table {
  explicit Table(const provider::QueuePairInit& init = with_peers(100))
      : peers(owner, shares, init) {
    owner.peers = &peers;
  }
  RdPeer* add(const Address& address, RdPeers::Opener opener = RdPeers::Opener::there) {
    return peers.find_or_add(address, opener, now);
  }

  Owner owner;
  ReceiveShares shares{false};
  RdPeers peers;
  Time now = Time{} + 100s;
};

}  // namespace

TEST_CASE("rd peers: each has a place for its timer, and gives it back") {
  Table table;
  RdPeer* const first = table.add(at("10.0.0.1"));
  REQUIRE(first != nullptr);
  REQUIRE(table.add(at("10.0.0.2")) != nullptr);
  CHECK(table.owner.timer_places == 2);
  table.peers.erase(*first);
  CHECK(table.owner.timer_places == 1);
  table.peers.clear();
  CHECK(table.owner.timer_places == 0);
}

TEST_CASE("rd peers: a peer whose timer finds no place is not added") {
  Table table;
  table.owner.no_memory = true;
  CHECK(table.add(at("10.0.0.1")) == nullptr);
  CHECK(table.peers.size() == 0);
  table.owner.no_memory = false;
  RdPeer* const peer = table.add(at("10.0.0.1"));
  REQUIRE(peer != nullptr);
  CHECK(peer->host.peers == 1);
}

TEST_CASE("rd peers: in a full table a peer that is not in use gives way") {
  Table table(with_peers(4));
  for (const char* host : {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"})
    REQUIRE(table.add(at(host)) != nullptr);
  CHECK(table.add(at("10.0.0.5")) == nullptr);
  table.now += 2s;
  REQUIRE(table.add(at("10.0.0.5")) != nullptr);
  CHECK(table.peers.size() == 4);
}

TEST_CASE("rd peers: in a full table addresses come to as many peers as others, by those unused") {
  Table table(with_peers(4));
  std::vector<RdPeer*> crowd;
  for (uint16_t port = 1; port <= 4; ++port) crowd.push_back(table.add(at("10.0.0.1", port)));
  for (RdPeer* peer : crowd) peer->times.delivered(table.now);
  table.now += 500ms;
  CHECK(table.add(at("10.0.0.2", 1)) == nullptr);  // the end of theirs would count as broken
  table.now += 600ms;
  for (RdPeer* peer : crowd) peer->times.heard(table.now);
  CHECK(table.add(at("10.0.0.2", 1)) != nullptr);
  CHECK(table.add(at("10.0.0.2", 2)) != nullptr);
  CHECK(table.add(at("10.0.0.2", 3)) == nullptr);
}

TEST_CASE("rd peers: of those that are not in use one at the address with most peers gives way") {
  Table table(with_peers(4));
  REQUIRE(table.add(at("10.0.0.9")) != nullptr);
  for (uint16_t port = 1; port <= 3; ++port) REQUIRE(table.add(at("10.0.0.1", port)) != nullptr);
  table.now += 2s;
  for (uint16_t port = 1; port <= 2; ++port) REQUIRE(table.add(at("10.0.0.2", port)) != nullptr);
  CHECK(table.peers.find(at("10.0.0.9")) != nullptr);
}

TEST_CASE("rd peers: a part of the table is for peers that this side sends to first") {
  Table table(with_peers(8));
  for (int host = 1; host <= 7; ++host)
    REQUIRE(table.add(at(("10.0.1." + std::to_string(host)).c_str())) != nullptr);
  CHECK(table.add(at("10.0.0.2")) == nullptr);
  CHECK(table.add(at("10.0.0.2"), RdPeers::Opener::here) != nullptr);
}

TEST_CASE("rd peers: the memory of records is limited as over UD, and shares one bound") {
  provider::QueuePairInit init = with_peers(100);
  init.datagram.closed_per_source = 16;
  init.datagram.max_source_memory = 64 << 10;
  Table table(init);
  RdPeer* const peer = table.add(at("10.0.0.1"));
  REQUIRE(peer != nullptr);
  for (uint32_t msn = 0; msn < 200; msn += 2) peer->source.closed_records.close(msn);
  CHECK(peer->source.closed_records.remembered() == 16);
}

TEST_CASE("rd peers: a share of the receives goes to an address that holds none, or in turn") {
  constexpr size_t kReceives = 100;
  Table table;
  const auto peer = [&](const char* host, uint16_t port) { return table.add(at(host, port)); };
  RdShareQueue& waiting = table.peers.without_share;
  RdPeer* const first = peer("10.0.0.1", 1);
  RdPeer* const second = peer("10.0.0.1", 2);
  RdPeer* const other = peer("10.0.0.2", 1);
  RdPeer* const last = peer("10.0.0.3", 1);
  first->host.hold_receive();
  other->host.hold_receive();
  for (RdPeer* one : {first, second, other, last}) waiting.add(*one);
  std::vector<RdPeer*> order;
  while (RdPeer* const next = waiting.next(kReceives)) {
    static_cast<ListNode<RdHeldTag>&>(*next).unlink();
    next->host.hold_receive();
    order.push_back(next);
  }
  CHECK(order == std::vector<RdPeer*>{last, first, other, second});
  CHECK(waiting.empty());
  for (int i = 0; i < 3; ++i) first->host.give_back_receive();
  for (int i = 0; i < 2; ++i) other->host.give_back_receive();
  last->host.give_back_receive();
}

TEST_CASE("rd peers: queue pairs with one receive queue have one half of its receives together") {
  ReceiveShares shares(true);
  ReceiveShares::Share& here = shares.join(at("10.0.0.1"));
  ReceiveShares::Share& there = shares.join(at("10.0.0.2"));
  size_t available = 16;
  const auto hold = [&](ReceiveShares::Share& share) {
    if (!shares.may_hold(share, available)) return false;
    shares.hold(share);
    --available;
    return true;
  };
  size_t held = 0;
  while (hold(here)) ++held;
  CHECK(held == 4);
  while (hold(there)) ++held;
  CHECK(held == 8);
  CHECK_FALSE(shares.may_hold(available));
  CHECK(&shares.join(at("10.0.0.1", 9)) == &here);  // whatever the port
}

TEST_CASE("rd peers: an address that has its share of the table takes no place from another") {
  provider::QueuePairInit init = with_peers(8);  // one place is kept from strangers
  init.reliable.max_peers_per_address = 1;
  Table table(init);
  for (const char* host :
       {"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"})
    REQUIRE(table.add(at(host)) != nullptr);
  table.now += 10s;
  CHECK(table.add(at("10.0.0.1", 7001)) == nullptr);
  CHECK(table.peers.size() == 7);
  CHECK(table.add(at("10.0.0.8")) != nullptr);
  CHECK(table.peers.size() == 7);
}

TEST_CASE("rd peers: while no receive may be held, no peer is looked for that may") {
  Table table;
  RdPeer* const peer = table.add(at("10.0.0.1"));
  REQUIRE(peer != nullptr);
  RdShareQueue& waiting = table.peers.without_share;
  waiting.add(*peer);
  CHECK(waiting.next(0) == nullptr);  // none is posted
  CHECK(waiting.next(2) == peer);
  static_cast<ListNode<RdHeldTag>&>(*peer).unlink();
  for (int i = 0; i < 2; ++i) table.shares.hold();  // half of four
  CHECK(waiting.next(2) == nullptr);
  CHECK(peer->host.linked());  // nobody looked at the address
  table.shares.give_back();
  CHECK(waiting.next(3) == nullptr);
  CHECK_FALSE(peer->host.linked());
}
