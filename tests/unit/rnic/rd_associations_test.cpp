// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_associations.h"

#include <chrono>
#include "support/catch.h"

#include "base/serial.h"
#include "rd_associating.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using dgram::Handshake;
using State = Handshake::State;

constexpr uint32_t kOtherIncarnation = 0x8888;

struct Fixture : Associating {
  using Associating::Associating;

  /// A request was handed over for the peer.
  SendEntry& add(RdPeer& to, size_t length = 10, WrOpcode opcode = WrOpcode::send) {
    REQUIRE_FALSE(sends.queue.post(request(to, length, opcode)));
    if (to.work.requests.empty()) to.times.advanced(now);
    SendEntry& entry = sends.queue.hand_over();
    requests.add(to, entry);
    return entry;
  }
  /// The peer resets the association.
  void reset(uint32_t incarnation = kPeerIncarnation, uint8_t flags = 0) {
    associations.ended(peer, {.kind = dgram::RdKind::reset, .flags = flags}, incarnation, now);
  }
  /// Whether no byte is cut of the peer's first request, and that is to be cut next.
  bool is_begun_anew() { return peer.work.cursor.at_beginning(peer.work.requests.front()); }
  State state() const { return peer.handshake().state(); }
  uint64_t count(Counter which) const { return counters.get(which); }
};

}  // namespace

// --- The beginning of an association.

TEST_CASE("rd associations: an open has names of its own each time, the later ones later") {
  Fixture f;
  f.associations.open(f.peer, f.now);
  CHECK(f.state() == State::opening);
  CHECK(f.peer.signs.open_wanted());
  CHECK(f.peers.table.ready.front() == &f.peer);
  CHECK(f.peer.awaited());
  CHECK(f.peer.times.silent_since() == f.now);
  const uint32_t epoch = f.peer.handshake().epoch();
  const uint64_t nonce = f.peer.handshake().proof().nonce;
  f.associations.open(f.peer, f.now);
  CHECK(serial_before(epoch, f.peer.handshake().epoch()));
  CHECK(f.peer.handshake().proof().nonce != nonce);
}

TEST_CASE("rd associations: an open of the peer is answered, with the window that it told") {
  Fixture f;
  f.open_from(f.peer, 1, kPeerIncarnation, 3);
  CHECK(f.state() == State::established);
  CHECK(f.peer.source.key.incarnation == kPeerIncarnation);
  CHECK(f.peer.receiver().due() == dgram::Receiver::Due::now);
  CHECK(f.peers.table.ready.front() == &f.peer);
  CHECK(f.peer.sender().may_send(2));
  CHECK_FALSE(f.peer.sender().may_send(3));
  CHECK(f.count(Counter::rd_associations) == 1);
}

TEST_CASE("rd associations: an open that comes again is answered again, and changes nothing") {
  Fixture f;
  f.open_from(f.peer, 5);
  const uint64_t first = f.peer.sender().window().next();
  f.peer.receiver().told(true);
  f.peers.table.ready.clear();
  f.open_from(f.peer, 5);
  CHECK(f.peer.sender().window().next() == first);
  CHECK(f.count(Counter::rd_associations) == 1);
  CHECK(f.peer.receiver().due() == dgram::Receiver::Due::now);
  CHECK(f.peers.table.ready.front() == &f.peer);
}

TEST_CASE("rd associations: an open of an association that is over is dropped") {
  Fixture f;
  f.open_from(f.peer, 5);
  f.peer.receiver().told(true);
  f.open_from(f.peer, 4);
  CHECK(f.peer.handshake().peer_epoch() == 5);
  CHECK(f.peer.receiver().due() == dgram::Receiver::Due::nothing);
  CHECK(f.count(Counter::drop_rd_association) == 1);
  CHECK(f.count(Counter::rd_associations) == 1);
}

TEST_CASE("rd associations: a later open of the peer ends the association, and work begins anew") {
  Fixture f;
  f.open_from(f.peer, 5);
  f.add(f.peer);
  cut(f.peer, f.sends.queue, 4);
  const uint64_t before = f.peer.sender().window().next();
  f.open_from(f.peer, 6, kPeerIncarnation, 100, dgram::kRdRemembersFlag);
  CHECK(f.state() == State::established);
  CHECK(f.peer.handshake().peer_epoch() == 6);
  CHECK(f.peer.sender().window().next() != before);
  CHECK(f.peer.sender().window().idle());
  CHECK(f.is_begun_anew());
  CHECK(f.count(Counter::rd_associations) == 2);
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rd associations: the time until an open is accepted is a round trip") {
  Fixture f;
  f.associations.open(f.peer, f.now);
  dgram::Handshake& handshake = f.peer.handshake();
  REQUIRE(handshake.challenged(kPeerIncarnation, {.nonce = handshake.proof().nonce}, f.now));
  f.now += 5ms;
  REQUIRE(handshake.check({.kind = dgram::RdKind::acknowledgement,
                           .epoch = 9,
                           .peer_epoch = handshake.epoch(),
                           .peer_incarnation = f.own_incarnation(f.peer)},
                          kPeerIncarnation,
                          f.own_incarnation(f.peer)) == Handshake::Verdict::accepted);
  f.associations.accepted(f.peer, f.now);
  CHECK(f.peer.sender().round_trip().smoothed() == 5ms);
  CHECK_FALSE(f.peer.signs.open_wanted());
  CHECK(f.peers.table.ready.front() == &f.peer);
  CHECK(f.count(Counter::rd_associations) == 1);
}

// --- Other incarnations.

TEST_CASE("rd associations: another incarnation is another peer, and the one before it is probed") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  f.open_from(f.peer, 1, kOtherIncarnation);
  CHECK(f.peers.table.size() == 2);
  RdPeer* const newest = f.peers.table.find(f.peer.address());
  REQUIRE(newest != nullptr);
  REQUIRE(newest != &f.peer);
  CHECK(newest->handshake().established());
  CHECK(newest->source.key.incarnation == kOtherIncarnation);
  CHECK(f.state() == State::established);
  CHECK(f.peer.source.key.incarnation == kPeerIncarnation);
  CHECK(f.peer.signs.probe_wanted());
  CHECK(f.peer.signs.doubted());
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rd associations: where there is no room for it another incarnation takes the place") {
  provider::QueuePairInit one = rd_init();
  one.reliable.max_peers = 1;
  Fixture f(one);
  f.open_from(f.peer);
  f.add(f.peer);
  f.open_from(f.peer, 1, kOtherIncarnation);
  CHECK(f.peers.table.size() == 1);
  CHECK(f.peer.source.key.incarnation == kOtherIncarnation);
  CHECK(f.state() == State::established);
  CHECK(f.sends.statuses() == Statuses{WcStatus::peer_restarted});
  CHECK(f.count(Counter::rd_restarts) == 1);
}

TEST_CASE(
    "rd associations: work begun with another incarnation fails, unless all of it are Reads") {
  const WrOpcode opcode = GENERATE(WrOpcode::send, WrOpcode::rdma_read);
  const bool reads = opcode == WrOpcode::rdma_read;
  CAPTURE(reads);
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer, 10, opcode);
  f.associations.reopen(f.peer, f.now);
  f.accept_from(f.peer, 0, kOtherIncarnation);
  CHECK(f.peer.source.key.incarnation == kOtherIncarnation);
  CHECK(f.sends.statuses() == (reads ? Statuses{} : Statuses{WcStatus::peer_restarted}));
  CHECK(f.count(Counter::rd_restarts) == (reads ? 0 : 1));
  CHECK(f.peer.work.cursor.has_work() == reads);
}

TEST_CASE("rd associations: work that was posted meanwhile goes to the incarnation that accepts") {
  Fixture f;
  f.associations.open(f.peer, f.now);
  f.add(f.peer);
  f.accept_from(f.peer);
  CHECK(f.sends.statuses().empty());
  CHECK(f.is_begun_anew());
}

TEST_CASE("rd associations: work posted after a peer was given up goes to the one that accepts") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  f.associations.reopen(f.peer, f.now);
  f.associations.give_up(f.peer, f.now);
  REQUIRE(f.sends.statuses() == Statuses{WcStatus::retry_exceeded});
  f.add(f.peer);
  f.associations.open(f.peer, f.now);
  f.accept_from(f.peer, 0, kOtherIncarnation);
  CHECK(f.sends.statuses().empty());
  CHECK(f.is_begun_anew());
}

TEST_CASE("rd associations: a Write-Record of the former incarnation is over with the next one") {
  Fixture f;
  f.open_from(f.peer);
  REQUIRE(f.deliver(f.peer, f.record(5, 6, 0, "abc")) == RdDelivery::Outcome::delivered);
  f.associations.reopen(f.peer, f.now);
  f.open_from(f.peer, 1, kOtherIncarnation);
  CHECK(f.peer.source.open_records == 0);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].valid_bytes == 3);
  // Of the new one it is another message, though it has the same MSN.
  CHECK(f.deliver(f.peer, f.record(5, 3, 0, "xyz")) == RdDelivery::Outcome::delivered);
  CHECK(f.reported().size() == 1);
}

// --- The end of an association.

TEST_CASE("rd associations: work that cannot have been delivered begins anew with the same peer") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  cut(f.peer, f.sends.queue, 4);
  f.reset();
  CHECK(f.state() == State::opening);
  CHECK(f.peer.signs.open_wanted());
  f.accept_from(f.peer);  // though it has forgotten
  CHECK(f.is_begun_anew());
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rd associations: work of which something may be delivered needs a peer that remembers") {
  const bool broken = GENERATE(true, false);
  const bool remembers = GENERATE(true, false);
  CAPTURE(broken, remembers);
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  cut(f.peer, f.sends.queue, 4);
  if (!broken) f.now += 1s;
  f.reset(kPeerIncarnation, broken ? dgram::kRdBrokenFlag : uint8_t{0});
  f.accept_from(f.peer, remembers ? dgram::kRdRemembersFlag : uint8_t{0});
  CHECK(f.sends.statuses() == (remembers ? Statuses{} : Statuses{WcStatus::peer_restarted}));
  CHECK(f.peer.work.requests.empty() == !remembers);
}

TEST_CASE("rd associations: Reads begin anew with a peer that has forgotten") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer, 10, WrOpcode::rdma_read);
  f.reset(kPeerIncarnation, dgram::kRdBrokenFlag);
  f.accept_from(f.peer);
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rd associations: without work an association that has ended is not opened again") {
  Fixture f;
  f.open_from(f.peer);
  f.reset();
  CHECK(f.state() == State::closed);
  CHECK_FALSE(f.peer.signs.open_wanted());
  CHECK_FALSE(f.peer.awaited());
}

TEST_CASE("rd associations: work fails with the peer that has restarted, and counts one restart") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  f.add(f.peer, 10, WrOpcode::rdma_read);
  f.reset(kOtherIncarnation);
  CHECK(f.sends.statuses() == Statuses{WcStatus::peer_restarted, WcStatus::peer_restarted});
  CHECK(f.count(Counter::rd_restarts) == 1);
  CHECK(f.state() == State::closed);
}

TEST_CASE(
    "rd associations: work of which nothing gets through begins anew a few times, and fails") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  for (int i = 0; i < RdRewinds::kMost; ++i) {
    f.reset();
    f.accept_from(f.peer);
    REQUIRE(f.sends.statuses().empty());
  }
  f.reset();
  CHECK(f.sends.statuses() == Statuses{WcStatus::retry_exceeded});
  CHECK(f.state() == State::closed);
}

TEST_CASE("rd associations: work that has not advanced for long is not begun anew") {
  const bool early = GENERATE(false, true);  // datagrams came, and the one before them did not
  CAPTURE(early);
  const auto end_after = [&](Duration time) {
    Fixture f;
    f.open_from(f.peer);
    f.add(f.peer);
    f.now += time;
    early ? f.associations.give_up_early(f.peer, f.now) : f.reset();
    CHECK(f.count(Counter::rd_early_dropped) == (early ? 1 : 0));
    CHECK((f.state() == State::closed) == f.peer.work.requests.empty());
    return f.sends.statuses();
  };
  CHECK(end_after(kPeerTimeout - 1ns).empty());
  CHECK(end_after(kPeerTimeout) == Statuses{WcStatus::retry_exceeded});
}

TEST_CASE("rd associations: the work for a peer without a sign of life fails, and is forgotten") {
  Fixture f;
  f.open_from(f.peer);
  f.add(f.peer);
  f.add(f.peer);
  cut(f.peer, f.sends.queue, 4);
  f.associations.give_up(f.peer, f.now);
  CHECK(f.sends.statuses() == Statuses{WcStatus::retry_exceeded, WcStatus::retry_exceeded});
  CHECK(f.count(Counter::rd_silent) == 1);
  CHECK(f.state() == State::closed);
  CHECK_FALSE(f.peer.has_work());
}

TEST_CASE("rd associations: this side remembers the peer, unless it has given it up") {
  const bool gives_up = GENERATE(true, false);
  CAPTURE(gives_up);
  Fixture f;
  f.associations.open(f.peer, f.now);
  f.accept_from(f.peer);
  gives_up ? f.associations.give_up(f.peer, f.now) : f.associations.reopen(f.peer, f.now);
  f.open_from(f.peer, f.accepted_epoch + 1);
  CHECK(f.peer.handshake().header(dgram::RdKind::data).remembers() == !gives_up);
}

// --- What an association holds.

TEST_CASE("rd associations: with its end a Send that is not whole gives its receive back") {
  Fixture f;
  for (uint64_t id = 1; id <= 4; ++id) f.post(id, id * 10, 10);
  f.open_from(f.peer);
  REQUIRE(f.deliver(f.peer, send(5, 0, "abc", false)) == RdDelivery::Outcome::delivered);
  REQUIRE(f.receives.next() == 2);
  f.associations.reopen(f.peer, f.now);
  CHECK(f.receives.next() == 1);
  CHECK(f.peer.host.holds_none());
  CHECK(f.reported().empty());
}

TEST_CASE("rd associations: with its end the datagrams that came early go, and their memory") {
  Fixture f;
  f.open_from(f.peer);
  f.come_early(f.peer, "early");
  REQUIRE(f.buffer.used() != 0);
  f.associations.give_up_early(f.peer, f.now);
  CHECK(f.peer.receiver().kept() == 0);
  CHECK(f.buffer.used() == 0);
  CHECK(f.buffer.memory() == 0);
  CHECK(f.peer.host.buffered.used == 0);
}

TEST_CASE("rd associations: the memory for early datagrams of other peers stays") {
  Fixture f;
  RdPeer& other = f.peers.add("10.0.0.2");
  f.open_from(f.peer);
  f.open_from(other);
  f.come_early(f.peer, "early");
  f.come_early(other, "early");
  f.associations.reopen(f.peer, f.now);
  CHECK(f.peer.receiver().kept() == 0);
  CHECK(other.receiver().kept() == 1);
  CHECK(f.buffer.used() == other.host.buffered.used);
}

TEST_CASE("rd associations: with its end the peer waits no more, in no line") {
  Fixture f;
  f.open_from(f.peer);
  f.peer.turn.hold();
  f.peer.turn.begin_refusal();
  f.peer.turn.wait_for_memory(f.now);
  f.peers.table.without_receive.push_back(f.peer);
  f.peers.table.soon.push_back(f.peer);
  f.peer.signs.want_probe();
  f.associations.reopen(f.peer, f.now);
  CHECK(f.peers.table.without_receive.empty());
  CHECK(f.peers.table.soon.empty());
  CHECK(f.peer.turn.may_deliver());
  CHECK(f.peer.turn.retry_at() == Time::max());
  CHECK_FALSE(f.peer.signs.probe_wanted());
}

TEST_CASE("rd associations: the peer's Reads end with it, and so does a skip that was to come") {
  Fixture f;
  f.open_from(f.peer);
  REQUIRE_FALSE(f.responder.take_request(f.peer, {.sink_stag = 5, .source_stag = f.region}).drop);
  f.peer.work.cursor.close({dgram::MessageKind::send, 1});
  f.associations.reopen(f.peer, f.now);
  CHECK(f.peer.work.inbound_reads.empty());
  CHECK_FALSE(f.peer.work.cursor.has_work());
}

TEST_CASE("rd associations: a Write-Record goes on in the next one, unless its peer is given up") {
  Fixture f;
  f.open_from(f.peer);
  REQUIRE(f.deliver(f.peer, f.record(5, 6, 0, "abc")) == RdDelivery::Outcome::delivered);
  f.associations.reopen(f.peer, f.now);
  CHECK(f.peer.source.open_records == 1);
  f.associations.give_up(f.peer, f.now);
  CHECK(f.peer.source.open_records == 0);
}

TEST_CASE("rd associations: a peer that is dropped gives all back, and no work of it is reported") {
  Fixture f;
  for (uint64_t id = 1; id <= 4; ++id) f.post(id, id * 10, 10);
  f.open_from(f.peer);
  f.add(f.peer);
  REQUIRE(f.deliver(f.peer, send(5, 0, "abc", false)) == RdDelivery::Outcome::delivered);
  REQUIRE(f.deliver(f.peer, f.record(5, 6, 0, "abc")) == RdDelivery::Outcome::delivered);
  f.come_early(f.peer, "early");
  f.associations.drop(f.peer);
  CHECK(f.receives.next() == 1);
  CHECK(f.peer.source.open_records == 0);
  CHECK(f.buffer.memory() == 0);
  CHECK(f.sends.statuses().empty());
}

// --- What is said of the end.

TEST_CASE("rd associations: an association ends broken within a second of a delivery") {
  Fixture f;
  CHECK(RdAssociations::flags(nullptr, f.now) == 0);
  CHECK(RdAssociations::flags(&f.peer, f.now) == 0);
  f.peer.times.delivered(f.now);
  CHECK(RdAssociations::flags(&f.peer, f.now) == dgram::kRdBrokenFlag);
  CHECK(RdAssociations::flags(&f.peer, f.now + 1s - 1ns) == dgram::kRdBrokenFlag);
  CHECK(RdAssociations::flags(&f.peer, f.now + 1s) == 0);
}

TEST_CASE("rd associations: the datagrams of a peer that is given up may have come until then") {
  Fixture f;
  f.open_from(f.peer);
  f.associations.give_up(f.peer, f.now);
  CHECK(RdAssociations::flags(&f.peer, f.now + 500ms) == dgram::kRdBrokenFlag);
}
