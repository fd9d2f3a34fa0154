// SPDX-License-Identifier: Apache-2.0
#include "wire.h"

#include <cerrno>
#include <memory>
#include <string>

#include "llp/memory/memory_network.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::explore;

namespace {

/// Two links with a wire between them; each datagram is a single letter.
struct Ends {
  Ends() { wire.hold(true); }

  void send(size_t side, const std::string& letters) {
    for (const char letter : letters) {
      const auto byte = static_cast<std::byte>(letter);
      const ConstBytes piece(&byte, 1);
      const llp::OutgoingDatagram datagram{links[other(side)]->local_address(), {&piece, 1}};
      REQUIRE(links[side]->send({&datagram, 1}).sent == 1);
    }
  }
  std::string received(size_t side) {
    std::string letters;
    links[side]->receive(batch);
    for (const llp::IncomingDatagram& datagram : batch.datagrams())
      letters += static_cast<char>(datagram.bytes.front());
    return letters;
  }
  /// All that is on the wire is delivered.
  std::string rest() {
    while (wire.next() != nullptr || wire.fall_silent()) wire.decide(Fate::deliver);
    return received(1);
  }

  Wire wire;
  std::shared_ptr<llp::MemoryNetwork> network = llp::MemoryNetwork::create();
  std::array<std::unique_ptr<llp::DatagramLink>, kSides> links{
      wire.attach(0, network->open(Address::parse("10.0.0.1"))),
      wire.attach(1, network->open(Address::parse("10.0.0.2")))};
  llp::ReceiveBatch batch{1, 2048, 16};
};

}  // namespace

TEST_CASE("wire: nothing arrives before its fate is decided, and then in the order of sending") {
  Ends ends;
  ends.send(0, "ab");
  ends.send(1, "x");
  CHECK(ends.received(1).empty());
  CHECK(ends.rest() == "ab");
  CHECK(ends.received(0) == "x");
}

TEST_CASE("wire: a datagram that is not held goes on at once") {
  Ends ends;
  ends.wire.hold(false);
  ends.send(0, "ab");
  CHECK(ends.received(1) == "ab");
  CHECK(ends.wire.next() == nullptr);
}

TEST_CASE("wire: each fate is what its name says") {
  Ends ends;
  ends.send(0, "abc");
  const auto decide = [&](Fate fate) {
    ends.wire.decide(fate);
    return ends.rest();
  };
  SECTION("drop") { CHECK(decide(Fate::drop) == "bc"); }
  SECTION("twice") { CHECK(decide(Fate::twice) == "aabc"); }
  SECTION("swap") { CHECK(decide(Fate::swap) == "bac"); }
  SECTION("outage") { CHECK(decide(Fate::outage).empty()); }
}

TEST_CASE("wire: a swapped datagram overtakes nothing that goes the other way") {
  Ends ends;
  ends.send(0, "a");
  ends.send(1, "x");
  ends.wire.decide(Fate::swap);
  ends.wire.decide(Fate::deliver);
  CHECK(ends.received(1).empty());
  CHECK(ends.wire.next() == nullptr);
  CHECK(ends.wire.fall_silent());
  CHECK(ends.rest() == "a");
}

TEST_CASE("wire: a late datagram comes after those sent in the silence before it") {
  for (const Fate fate : {Fate::late, Fate::echo}) {
    Ends ends;
    ends.send(0, "ab");
    ends.wire.decide(fate);
    ends.wire.decide(Fate::deliver);
    CHECK(ends.received(1) == (fate == Fate::late ? "b" : "ab"));
    CHECK_FALSE(ends.wire.fall_silent());
    ends.send(0, "c");
    ends.wire.decide(Fate::deliver);
    CHECK(ends.received(1) == "c");
    CHECK(ends.wire.fall_silent());
    CHECK(ends.rest() == "a");
    CHECK_FALSE(ends.wire.release_all());
  }
}

TEST_CASE("wire: an outage ends with the silence") {
  Ends ends;
  ends.send(0, "abc");
  ends.wire.decide(Fate::outage);
  CHECK(ends.rest().empty());
  ends.send(0, "d");
  CHECK(ends.rest() == "d");
}

TEST_CASE("wire: a narrow path carries nothing that is too long, and says so or not") {
  using Known = Wire::Known;
  const auto known = GENERATE(Known::limit, Known::refusal, Known::nothing);
  Ends ends;
  ends.wire.narrow(10, known);
  const std::vector<std::byte> bytes(11);
  const ConstBytes piece(bytes);
  const llp::OutgoingDatagram datagram{ends.links[1]->local_address(), {&piece, 1}};
  const llp::SendResult result = ends.links[0]->send({&datagram, 1});
  CHECK(result.error == (known == Known::nothing ? 0 : EMSGSIZE));
  CHECK((ends.links[0]->max_datagram(datagram.to) == 10) == (known == Known::limit));
  CHECK(ends.wire.next() == nullptr);
}
