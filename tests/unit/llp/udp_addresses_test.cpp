// SPDX-License-Identifier: Apache-2.0
// Links at all addresses of the host: they tell which one a datagram came to, and send from there.

#include "backends.h"
#include "datagrams.h"
#include "llp/udp/focused_udp_link.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::RawUdp;
using test::text_pattern;

struct Place {
  const char* all;    // the link's address
  const char* asked;  // one that is not where the kernel's answers would leave
};

Place any_place() {
  return GENERATE(Place{"0.0.0.0", "127.0.0.2"}, Place{"::", "127.0.0.2"}, Place{"::", "::1"});
}

Address asked_of(const UdpLink& link, const Place& place) {
  return Address::parse(place.asked, link.local_address().port());
}

AddressFamily family_of(const Place& place) { return Address::parse(place.asked).family(); }

/// The number by which a link knows the address that `peer` sends to.
uint32_t number_at(UdpLink& link, RawUdp& peer, const Address& asked) {
  REQUIRE(peer.send(asked, "where?"));
  ReceiveBatch batch(2, 65536, 256);
  REQUIRE(test::wait_input(link));
  REQUIRE(link.receive(batch) == 1);
  CHECK(batch.datagrams()[0].from == peer.address());
  return batch.datagrams()[0].local;
}

BACKENDS_TEST_CASE("a link at all addresses answers from the one that was asked") {
  const Place place = any_place();
  const auto link = TestType::open(Address::parse(place.all));
  RawUdp peer(Address::loopback(family_of(place)));
  const Address asked = asked_of(*link, place);
  const uint32_t local = number_at(*link, peer, asked);
  CHECK(local != 0);
  CHECK(number_at(*link, peer, asked) == local);
  // One alone, which is copied; one that is gathered; a train, and two to go with it.
  const std::vector<size_t> sizes = GENERATE(std::vector<size_t>{100}, std::vector<size_t>{4000},
                                             std::vector<size_t>{900, 900, 900, 4, 70});
  std::vector<std::string> payloads;
  for (size_t size : sizes) payloads.push_back(text_pattern(size, payloads.size()));
  std::vector<ConstBytes> pieces;
  for (const std::string& payload : payloads) pieces.push_back(bytes_of(payload));
  std::vector<OutgoingDatagram> burst;
  for (const ConstBytes& piece : pieces) burst.push_back({peer.address(), {&piece, 1}, local});
  REQUIRE(link->send(burst).sent == burst.size());
  for (const std::string& payload : payloads) {
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->bytes == payload);
    CHECK(message->from == asked);
  }
}

BACKENDS_TEST_CASE("addresses at which a link is reached have different numbers") {
  const auto link = TestType::open(Address::parse("0.0.0.0"));
  RawUdp peer;
  const uint16_t port = link->local_address().port();
  std::vector<uint32_t> numbers;
  for (const char* host : {"127.0.0.2", "127.0.0.1", "127.0.0.3"})
    numbers.push_back(number_at(*link, peer, Address::parse(host, port)));
  CHECK(numbers[0] != numbers[1]);
  CHECK(numbers[0] != numbers[2]);
  CHECK(numbers[1] != numbers[2]);
  // One burst from all of them: datagrams from different addresses are no train.
  const ConstBytes piece = bytes_of("equal");
  std::vector<OutgoingDatagram> burst;
  for (uint32_t number : numbers) burst.push_back({peer.address(), {&piece, 1}, number});
  REQUIRE(link->send(burst).sent == 3);
  for (const char* host : {"127.0.0.2", "127.0.0.1", "127.0.0.3"}) {
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->from == Address::parse(host, port));
  }
}

BACKENDS_TEST_CASE("more addresses than have numbers are answered from the kernel's choice") {
  const auto link = TestType::open(Address::parse("0.0.0.0"));
  RawUdp peer;
  const uint16_t port = link->local_address().port();
  const auto host = [&](int i) {
    return Address::parse(
        "127.0." + std::to_string(1 + i / 200) + "." + std::to_string(1 + i % 200), port);
  };
  for (int i = 0; i < 256; ++i) REQUIRE(number_at(*link, peer, host(i)) != 0);
  CHECK(number_at(*link, peer, host(256)) == 0);
  CHECK(number_at(*link, peer, host(0)) != 0);
  REQUIRE(test::send_one(*link, peer.address(), "from anywhere").sent == 1);
  CHECK(peer.receive());
}

BACKENDS_TEST_CASE("a link at one address has no number for it") {
  const auto link = TestType::open(Address::loopback(AddressFamily::ipv4));
  RawUdp peer;
  CHECK(number_at(*link, peer, link->local_address()) == 0);
}

TEST_CASE("the second socket of a link at all addresses is at the one that the peer asked") {
  constexpr uint32_t kAfter = 8;
  const Place place = any_place();
  const auto link = FocusedUdpLink::open(Address::parse(place.all), {}, kAfter);
  RawUdp peer(Address::loopback(family_of(place)));
  const Address asked = asked_of(*link, place);
  const uint32_t local = number_at(*link, peer, asked);
  REQUIRE(link->set_watched(false));
  const ConstBytes piece = bytes_of("an answer");
  const OutgoingDatagram answer{peer.address(), {&piece, 1}, local};
  for (uint32_t i = 0; i < 2 * kAfter; ++i) {
    REQUIRE(link->send({&answer, 1}).sent == 1);
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->from == asked);
  }
  CHECK(link->focused());
  // A datagram to it has the same number, and one that came to another address still comes.
  REQUIRE(peer.send(asked, "to the second"));
  ReceiveBatch batch(8, 65536, 1024);
  size_t came = 0;
  for (int i = 0; i < 100 && came == 0; ++i) came = link->receive(batch);
  REQUIRE(came == 1);
  CHECK(batch.datagrams()[0].local == local);
  if (family_of(place) == AddressFamily::ipv6) return;
  REQUIRE(peer.send(Address::parse("127.0.0.3", asked.port()), "to another"));
  came = 0;
  for (int i = 0; i < 100 && came == 0; ++i) came = link->receive(batch);
  REQUIRE(came == 1);
  CHECK(batch.datagrams()[0].local != local);
}

}  // namespace
}  // namespace diwarp::llp
