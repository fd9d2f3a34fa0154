// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// The keys of a queue pair's cookies, sinks and tables are drawn. Two queue pairs, each in a world
/// of its own, have the same address, time and peer. With a constant key they would also have the
/// same cookies, the same STags of sinks, and their peers in the same order.

namespace {

constexpr size_t kRdHeaderBytes = 24;

/// A queue pair, and a peer that chooses its own names.
struct Twin {
  explicit Twin(QpType type)
      : reliable(type == QpType::rd),
        target(world.add_device(), {.memory = 1 << 20, .type = type}),
        region(target.pd, std::span(target.memory), Access::remote_read) {}

  /// The answer.
  std::vector<Datagram> send(const Datagram& datagram) {
    peer.send(target.address(), datagram);
    world.settle();
    return peer.receive();
  }
  /// The datagram that the queue pair answers with a Challenge, unless the cookie is one of its
  /// own.
  Datagram open(const std::vector<std::byte>& cookie = std::vector<std::byte>(16)) const {
    return to_bytes(1, ReliableHeader{.kind = kRdOpen,
                                      .window = 100,
                                      .epoch = 5,
                                      .peer_incarnation = shown,
                                      .content = challenge_content(7, cookie)});
  }
  Datagram request() const {
    return to_bytes(Segment{.opcode = kReadRequest,
                            .sink_stag = 0x5151,
                            .read_length = 1000,
                            .source_stag = region.rkey(),
                            .source_offset = region.base()});
  }
  Control challenge() {
    const auto answers = send(reliable ? open() : request());
    REQUIRE(answers.size() == 1);
    return read_control(answers[0]);
  }
  /// It goes on as another incarnation.
  void restart() {
    for (const QpState next : {QpState::error, QpState::reset, QpState::init, QpState::rts})
      target.qp.modify(next);
  }
  void associate() {
    const Control asked = challenge();
    shown = asked.incarnation;
    REQUIRE(send(open(cookie_of(asked))).size() == 1);
  }
  /// The sinks that the requests of a Read name.
  std::vector<uint32_t> sinks() {
    const Sge sge = target.mr.sge(0, 1 << 20);
    REQUIRE_FALSE(target.qp.post_read(
        {.sges = {sge}, .destination = peer.address(), .remote = {0xABCDEF01, 5000}}));
    world.settle();
    std::vector<uint32_t> named;
    for (const Datagram& one : peer.receive()) {
      const Segment asked = read_segment(one, reliable ? kRdHeaderBytes : 0);
      REQUIRE(asked.opcode == kReadRequest);
      named.push_back(asked.sink_stag);
    }
    return named;
  }

  const bool reliable;
  World world;
  Party target;
  MemoryRegion region;
  Peer peer{world, 7000};
  uint32_t shown = 0;  // the target's incarnation
};

}  // namespace

TEST_CASE("drawn keys: two queue pairs challenge one and the same peer with different cookies") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  Twin one(type);
  Twin other(type);
  REQUIRE(one.target.address() == other.target.address());
  REQUIRE(one.peer.address() == other.peer.address());
  const Control first = one.challenge();
  CHECK(cookie_of(first) != cookie_of(other.challenge()));
  // Nothing but the key makes the difference: another incarnation of the same queue pair has the
  // same cookie.
  one.restart();
  const Control again = one.challenge();
  CHECK(again.incarnation != first.incarnation);
  CHECK(cookie_of(again) == cookie_of(first));
}

TEST_CASE("drawn keys: two queue pairs name the sinks of their first Reads differently") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  Twin one(type);
  Twin other(type);
  if (type == QpType::rd) {
    one.associate();
    other.associate();
  }
  const auto sinks = one.sinks();
  CHECK(sinks.size() >= 2);
  CHECK(sinks != other.sinks());
}

TEST_CASE("drawn keys: two RD queue pairs list the same peers in different orders") {
  constexpr uint16_t kPeers = 100;
  const auto listed = [] {
    World world;
    Party party(world.add_device(), rd_options());
    for (uint16_t port = 1; port <= kPeers; ++port)
      REQUIRE_FALSE(party.send(Address::parse("10.0.1.1", port), 0, 1));
    world.settle();
    std::vector<Address> addresses;
    for (const ReliablePeer& peer : party.qp.peers()) addresses.push_back(peer.address);
    return addresses;
  };
  const auto one = listed();
  CHECK(one.size() == kPeers);
  CHECK(one != listed());
}
