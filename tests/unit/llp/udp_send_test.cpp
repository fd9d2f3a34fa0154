// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "backends.h"
#include "datagrams.h"
#include "llp/udp/udp_link.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"
#include "unit/base/allocations.h"

namespace diwarp::llp {
namespace {

using test::Burst;
using test::bytes_of;
using test::RawUdp;
using test::text_pattern;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);

/// A raw receiver that shows how datagrams were joined; none, and a line, where it cannot.
std::optional<RawUdp> train_watcher(const UdpLink& link,
                                    AddressFamily family = AddressFamily::ipv4) {
  RawUdp watcher(Address::loopback(family));
  const int large = 4 << 20;
  ::setsockopt(watcher.fd(), SOL_SOCKET, SO_RCVBUF, &large, sizeof large);
  if (!test::has_trains(link.gso(), watcher.coalesce())) return std::nullopt;
  return watcher;
}

/// Bytes and segment size of each message that comes in while some wait.
std::vector<std::pair<size_t, int>> shapes(RawUdp& watcher) {
  std::vector<std::pair<size_t, int>> result;
  while (watcher.readable()) {
    const auto message = watcher.receive();
    if (!message) break;
    result.emplace_back(message->bytes.size(), message->segment);
  }
  return result;
}

using Shapes = std::vector<std::pair<size_t, int>>;

Burst burst_of_sizes(const Address& to, const std::vector<size_t>& sizes) {
  Burst burst;
  for (size_t i = 0; i < sizes.size(); ++i) burst.add(to, text_pattern(sizes[i], i));
  return burst;
}

BACKENDS_TEST_CASE("the pieces of a datagram are on the wire in order, and nothing else") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  const std::array<ConstBytes, 4> pieces = {bytes_of("\x31\x02"), bytes_of(""), bytes_of("diwarp"),
                                            bytes_of("\x7f")};
  const OutgoingDatagram datagram = {peer.address(), pieces};
  CHECK(datagram.size() == 9);
  const SendResult result = link->send({&datagram, 1});
  CHECK(result.sent == 1);
  CHECK(result.status == SendStatus::ok);
  const auto arrived = peer.receive();
  REQUIRE(arrived);
  CHECK(arrived->bytes ==
        "\x31\x02"
        "diwarp\x7f");
  CHECK(arrived->from == link->local_address());
}

BACKENDS_TEST_CASE("an empty burst is sent at once, an empty datagram arrives empty") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  CHECK(link->send({}).status == SendStatus::ok);
  const OutgoingDatagram nothing = {peer.address(), {}};
  CHECK(link->send({&nothing, 1}).sent == 1);
  const auto arrived = peer.receive();
  REQUIRE(arrived);
  CHECK(arrived->bytes.empty());
}

BACKENDS_TEST_CASE("datagrams of every size up to the largest arrive whole") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  for (size_t size : {size_t{1}, size_t{2048}, size_t{2049}, size_t{9000}, kMaxDatagram}) {
    const std::string payload = text_pattern(size);
    REQUIRE(test::send_one(*link, peer.address(), payload).status == SendStatus::ok);
    const auto arrived = peer.receive();
    REQUIRE(arrived);
    CHECK(arrived->bytes == payload);
  }
}

BACKENDS_TEST_CASE("a burst of equal datagrams reaches a plain receiver one by one") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  std::vector<size_t> sizes(44, 1472);
  sizes.push_back(100);
  const Burst burst = burst_of_sizes(peer.address(), sizes);
  CHECK(link->send(burst.get()).sent == sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto arrived = peer.receive();
    REQUIRE(arrived);
    REQUIRE(arrived->bytes == text_pattern(sizes[i], i));
  }
  CHECK_FALSE(peer.readable());
}

BACKENDS_TEST_CASE(
    "equal datagrams to one destination leave as one message, the last may be shorter") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  const Burst burst = burst_of_sizes(watcher->address(), {100, 100, 100, 40, 100, 70, 80, 80});
  CHECK(link->send(burst.get()).sent == 8);
  CHECK(shapes(*watcher) == Shapes{{340, 100}, {170, 100}, {160, 80}});
}

BACKENDS_TEST_CASE("a train ends where the destination changes") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  RawUdp other;
  Burst burst;
  for (int i = 0; i < 3; ++i) {
    burst.add(watcher->address(), text_pattern(100));
    burst.add(watcher->address(), text_pattern(100));
    burst.add(other.address(), text_pattern(100));
  }
  CHECK(link->send(burst.get()).sent == 9);
  CHECK(shapes(*watcher) == Shapes(3, {200, 100}));
  CHECK(shapes(other) == Shapes(3, {100, 0}));
}

BACKENDS_TEST_CASE("the bytes of a train are those of its datagrams, whatever pieces they have") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  const std::array<ConstBytes, 2> ab = {bytes_of("a"), bytes_of("bcd")};
  const std::array<ConstBytes, 3> ef = {bytes_of("ef"), bytes_of(""), bytes_of("gh")};
  const std::array<ConstBytes, 1> ij = {bytes_of("ij")};
  const std::array<OutgoingDatagram, 3> burst = {
      {{watcher->address(), ab}, {watcher->address(), ef}, {watcher->address(), ij}}};
  CHECK(link->send(burst).sent == 3);
  const auto arrived = watcher->receive();
  REQUIRE(arrived);
  CHECK(arrived->bytes == "abcdefghij");
  CHECK(arrived->segment == 4);
}

BACKENDS_TEST_CASE("a train is whole where its last datagram is small and the others are not") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  for (const std::vector<size_t>& sizes :
       {std::vector<size_t>{300, 300, 100}, {256, 256, 256, 255}, {257, 257, 1}}) {
    CHECK(link->send(burst_of_sizes(watcher->address(), sizes).get()).sent == sizes.size());
    const auto arrived = watcher->receive();
    REQUIRE(arrived);
    CHECK(arrived->segment == static_cast<int>(sizes.front()));
    std::string expected;
    for (size_t i = 0; i < sizes.size(); ++i) expected += text_pattern(sizes[i], i);
    CHECK(arrived->bytes == expected);
  }
}

BACKENDS_TEST_CASE("a train has at most 64 datagrams") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  const Burst burst = burst_of_sizes(watcher->address(), std::vector<size_t>(150, 10));
  CHECK(link->send(burst.get()).sent == 150);
  CHECK(shapes(*watcher) == Shapes{{640, 10}, {640, 10}, {220, 10}});
}

BACKENDS_TEST_CASE("a train with its headers fits into 64 KiB") {
  const auto family = GENERATE(AddressFamily::ipv4, AddressFamily::ipv6);
  const auto link = TestType::open(Address::loopback(family));
  auto watcher = train_watcher(*link, family);
  if (!watcher) return;
  const Burst burst = burst_of_sizes(watcher->address(), std::vector<size_t>(50, 1472));
  CHECK(link->send(burst.get()).sent == 50);
  CHECK(shapes(*watcher) == Shapes{{size_t{44} * 1472, 1472}, {size_t{6} * 1472, 1472}});
}

BACKENDS_TEST_CASE("an empty datagram ends a train and arrives") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  const Burst burst = burst_of_sizes(watcher->address(), {10, 10, 0, 0, 10});
  CHECK(link->send(burst.get()).sent == 5);
  CHECK(shapes(*watcher) == Shapes{{20, 10}, {0, 0}, {0, 0}, {10, 0}});
}

BACKENDS_TEST_CASE("datagrams with many pieces are sent, those with more than 1024 are refused") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  const std::string letters = text_pattern(1025);
  std::vector<ConstBytes> pieces;
  for (const char& letter : letters) pieces.push_back(bytes_of({&letter, 1}));
  const std::span<const ConstBytes> all(pieces);
  // Two of 600 pieces are more than one call takes.
  const std::array<OutgoingDatagram, 4> burst = {{{peer.address(), all.first(600)},
                                                  {peer.address(), all.first(600)},
                                                  {peer.address(), all.first(1024)},
                                                  {peer.address(), all}}};
  const SendResult result = link->send(burst);
  CHECK(result.sent == 3);
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EMSGSIZE);
  for (const size_t size : {600u, 600u, 1024u})
    CHECK(peer.receive()->bytes == letters.substr(0, size));
  CHECK_FALSE(peer.readable());
}

BACKENDS_TEST_CASE("a burst to many destinations reaches each of them") {
  const auto link = TestType::open(kLoopback4);
  std::vector<RawUdp> peers(20);
  Burst burst;
  for (size_t i = 0; i < 60; ++i) burst.add(peers[i % 20].address(), text_pattern(50, i));
  CHECK(link->send(burst.get()).sent == 60);
  for (size_t i = 0; i < 60; ++i) CHECK(peers[i % 20].receive()->bytes == text_pattern(50, i));
}

BACKENDS_TEST_CASE("without offload a burst arrives all the same") {
  UdpOptions options;
  options.segmentation = options.coalescing = false;
  const auto link = TestType::open(kLoopback4, options);
  CHECK_FALSE(link->gso());
  CHECK_FALSE(link->gro());
  RawUdp watcher;
  watcher.coalesce();
  const Burst burst = burst_of_sizes(watcher.address(), std::vector<size_t>(40, 100));
  CHECK(link->send(burst.get()).sent == 40);
  CHECK(shapes(watcher) == Shapes(40, {100, 0}));
}

BACKENDS_TEST_CASE("segmentation and coalescing are switched off one without the other") {
  const auto both = TestType::open(kLoopback4);
  UdpOptions options;
  options.segmentation = false;
  const auto joining = TestType::open(kLoopback4, options);
  CHECK_FALSE(joining->gso());
  CHECK(joining->gro() == both->gro());
  std::swap(options.segmentation, options.coalescing);
  const auto splitting = TestType::open(kLoopback4, options);
  CHECK(splitting->gso() == both->gso());
  CHECK_FALSE(splitting->gro());
}

BACKENDS_TEST_CASE(
    "the kernel's refusal of segmentation turns it off, and the burst arrives singly") {
  const auto link = TestType::open(kLoopback4);
  auto watcher = train_watcher(*link);
  if (!watcher) return;
  // A socket without UDP checksums cannot segment, udp(7).
  const int on = 1;
  REQUIRE(::setsockopt(link->descriptor(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on) == 0);
  const Burst burst = burst_of_sizes(watcher->address(), {100, 100, 100});
  CHECK(link->send(burst.get()).sent == 3);
  CHECK_FALSE(link->gso());
  CHECK(shapes(*watcher) == Shapes(3, {100, 0}));
}

BACKENDS_TEST_CASE("an ICMP error that an earlier datagram earned does not stop a later one") {
  RawUdp raw;
  Address closed;
  {
    const RawUdp gone;
    closed = gone.address();
  }
  // Only connected sockets are told of ICMP errors.
  raw.connect(closed);
  const auto link = TestType::adopt(raw.release());
  RawUdp peer;
  CHECK(test::send_one(*link, closed, "into the void").status == SendStatus::ok);
  CHECK(test::send_one(*link, peer.address(), "hello").status == SendStatus::ok);
  CHECK(peer.receive()->bytes == "hello");
}

BACKENDS_TEST_CASE("a datagram beyond the path MTU is refused and the path is measured anew") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    const auto link = TestType::open(kLoopback4);
    RawUdp peer;
    CHECK(link->max_datagram(peer.address()) == 1472);
    CHECK(test::send_one(*link, peer.address(), text_pattern(1472)).status == SendStatus::ok);
    const SendResult beyond = test::send_one(*link, peer.address(), text_pattern(1473));
    CHECK(beyond.status == SendStatus::refused);
    CHECK(beyond.error == EMSGSIZE);

    CHECK(link->max_datagram(peer.address()) == 1472);
    REQUIRE(test::set_mtu("lo", 1300));
    CHECK(link->max_datagram(peer.address()) == 1472);
    const Burst burst = burst_of_sizes(peer.address(), {1472, 1472, 1272, 1272});
    const SendResult shrunk = link->send(burst.get());
    CHECK(shrunk.sent == 0);
    CHECK(shrunk.status == SendStatus::refused);
    CHECK(link->max_datagram(peer.address()) == 1272);
    CHECK(link->send(burst.get().subspan(2)).sent == 2);
    CHECK(link->gso() == TestType::open(kLoopback4)->gso());
  });
}

BACKENDS_TEST_CASE("a link that fragments sends beyond the path MTU") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    UdpOptions options;
    options.fragment = true;
    const auto link = TestType::open(kLoopback4, options);
    RawUdp peer;
    const Burst burst = burst_of_sizes(peer.address(), {30000, 30000, 500, 500});
    CHECK(link->send(burst.get()).sent == 4);
    for (const size_t size : {30000u, 30000u, 500u, 500u}) {
      CHECK(peer.receive()->bytes.size() == size);
    }
    CHECK(link->gso() == TestType::open(kLoopback4)->gso());
  });
}

BACKENDS_TEST_CASE("a full socket buffer is reported with the number of datagrams taken") {
  test::in_network_namespace([] {
    // Datagrams to a neighbour that never answers ARP stay in the socket's send buffer.
    if (std::system("ip link add v0 type veth peer name v1 2>/dev/null && "
                    "ip addr add 10.9.0.1/24 dev v0 && ip link set v0 up && ip link set v1 up") !=
        0) {
      std::cout << "SKIPPED: veth devices cannot be made here\n";
      return;
    }
    UdpOptions options;
    options.send_buffer = 20000;
    options.segmentation = GENERATE(false, true);
    const auto link = TestType::open(Address::parse("10.9.0.1"), options);
    const Burst burst =
        burst_of_sizes(Address::parse("10.9.0.2:9"), std::vector<size_t>(200, 1000));
    const SendResult result = link->send(burst.get());
    CHECK(result.status == SendStatus::would_block);
    CHECK(result.sent > 0);
    CHECK(result.sent < 200);
  });
}

BACKENDS_TEST_CASE("sending and receiving over UDP allocates nothing") {
  const auto link = TestType::open(kLoopback4);
  const auto peer = TestType::open(kLoopback4);
  const Burst burst = burst_of_sizes(peer->local_address(), std::vector<size_t>(70, 1000));
  ReceiveBatch batch(8, 65536, 1024);
  const size_t before = test::allocations();
  size_t received = 0;
  for (int round = 0; round < 10; ++round) {
    link->send(burst.get());
    link->send(burst.get().first(1));
    while (received < static_cast<size_t>(round + 1) * 71) {
      const size_t got = peer->receive(batch);
      if (got == 0) break;
      received += got;
    }
  }
  const size_t after = test::allocations();
  CHECK(received == 710);
  CHECK(after == before);
}

}  // namespace
}  // namespace diwarp::llp
