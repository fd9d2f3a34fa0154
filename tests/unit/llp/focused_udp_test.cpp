// SPDX-License-Identifier: Apache-2.0
// The second socket of a link for the destination it sends to most: which socket hears which
// datagrams, and when.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "datagrams.h"
#include "llp/udp/focused_udp_link.h"
#include "raw_socket.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::RawUdp;
using test::send_one;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
const Address kLoopback6 = Address::loopback(AddressFamily::ipv6);
constexpr uint32_t kAfter = 8;

std::unique_ptr<FocusedUdpLink> open_link(const Address& local = kLoopback4,
                                          uint32_t connect_after = kAfter) {
  return FocusedUdpLink::open(local, {}, connect_after);
}

/// So many messages of its number each; what the peer got of them.
std::vector<std::string> send_to(FocusedUdpLink& link, RawUdp& peer, const Address& to,
                                 size_t count) {
  std::vector<std::string> came;
  for (size_t i = 0; i < count; ++i) {
    CHECK(send_one(link, to, "number " + std::to_string(i)).status == SendStatus::ok);
    if (const auto message = peer.receive()) came.push_back(message->bytes);
  }
  return came;
}

void focus(FocusedUdpLink& link, RawUdp& peer) {
  REQUIRE(link.set_watched(false));
  REQUIRE(send_to(link, peer, peer.address(), kAfter + 1) == test::numbered(kAfter + 1));
  REQUIRE(link.focused());
}

/// Waits up to 5 s until one of the link's sockets, which share its port, has input.
void wait_input_of_any(const FocusedUdpLink& link) {
  constexpr int kDescriptors = 1024;
  std::vector<pollfd> sockets;
  for (int fd = 0; fd < kDescriptors; ++fd) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) continue;
    if (name.ss_family != AF_INET && name.ss_family != AF_INET6) continue;
    if (Address::from_sockaddr(reinterpret_cast<sockaddr*>(&name)).port() ==
        link.local_address().port())
      sockets.push_back({fd, POLLIN, 0});
  }
  CHECK(::poll(sockets.data(), sockets.size(), 5000) > 0);
}

/// What so many receives bring, each after a wait for input while fewer than `expected` came: a
/// datagram over loopback may arrive a moment later.
std::vector<std::string> receive(FocusedUdpLink& link, size_t receives, size_t expected) {
  ReceiveBatch batch(8, 65536, 1024);
  std::vector<std::string> came;
  for (size_t i = 0; i < receives; ++i) {
    if (came.size() < expected) wait_input_of_any(link);
    link.receive(batch);
    for (std::string& text : test::texts(batch)) came.push_back(std::move(text));
  }
  return came;
}

using Texts = std::vector<std::string>;

TEST_CASE("a destination that is sent to often gets a socket with the same address") {
  const auto link = open_link();
  RawUdp peer;
  REQUIRE(link->set_watched(false));
  CHECK(send_to(*link, peer, peer.address(), kAfter).size() == kAfter);
  CHECK_FALSE(link->focused());
  CHECK(send_to(*link, peer, peer.address(), 1).size() == 1);
  CHECK(link->focused());
  REQUIRE(send_one(*link, peer.address(), "from the second").sent == 1);
  const auto message = peer.receive();
  REQUIRE(message);
  CHECK(message->bytes == "from the second");
  CHECK(message->from == link->local_address());
  REQUIRE(peer.send(link->local_address(), "an answer"));
  CHECK(receive(*link, 2, 1) == Texts{"an answer"});
}

TEST_CASE("a burst of trains leaves by the second socket whole and in order") {
  const auto link = open_link();
  RawUdp peer;
  focus(*link, peer);
  Texts payloads;
  for (size_t i = 0; i < 100; ++i)
    payloads.push_back(test::text_pattern(i % 25 == 24 ? 100 : 900, i));
  REQUIRE(link->send(test::burst_of(peer.address(), payloads).get()).sent == payloads.size());
  for (const std::string& payload : payloads) {
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->bytes == payload);
    CHECK(message->from == link->local_address());
  }
}

TEST_CASE("a link that is watched has one socket, and so has one that is told never to connect") {
  const uint32_t after = GENERATE(0u, kAfter);
  const auto link = open_link(kLoopback4, after);
  RawUdp peer;
  if (after == 0) REQUIRE(link->set_watched(false));
  CHECK(send_to(*link, peer, peer.address(), 4 * kAfter).size() == 4 * kAfter);
  CHECK_FALSE(link->focused());
}

TEST_CASE("destinations that take turns earn no socket") {
  const auto link = open_link();
  std::array<RawUdp, 2> peers;
  REQUIRE(link->set_watched(false));
  for (size_t i = 0; i < 4 * kAfter; ++i)
    CHECK(send_to(*link, peers[i % 2], peers[i % 2].address(), 1).size() == 1);
  CHECK_FALSE(link->focused());
}

TEST_CASE("a group's address earns no socket") {
  const auto link = open_link();
  REQUIRE(link->set_watched(false));
  const Address group = Address::parse("239.1.2.3").with_port(link->local_address().port());
  for (size_t i = 0; i < 2 * kAfter; ++i) send_one(*link, group, "to all");
  CHECK_FALSE(link->focused());
}

TEST_CASE("strangers are heard beside the connected destination, and neither keeps the other out") {
  const auto link = open_link();
  RawUdp peer;
  RawUdp stranger;
  focus(*link, peer);
  receive(*link, 10 * FocusedUdpLink::kReceivesPerLook, 0);  // the first socket is silent by now
  REQUIRE(stranger.send(link->local_address(), "from a stranger"));
  CHECK(receive(*link, FocusedUdpLink::kReceivesPerLook, 1) == Texts{"from a stranger"});
  // Both are never empty while this goes on.
  size_t of_peer = 0;
  size_t of_stranger = 0;
  const size_t receives = 8 * FocusedUdpLink::kReceivesPerLook;
  for (size_t i = 0; i < receives; ++i) {
    REQUIRE(peer.send(link->local_address(), "peer"));
    REQUIRE(stranger.send(link->local_address(), "stranger"));
    for (const std::string& text : receive(*link, 1, 1)) ++(text == "peer" ? of_peer : of_stranger);
  }
  CHECK(of_peer >= receives / 4);
  CHECK(of_stranger >= receives / 4);
  const Texts rest = receive(*link, 2 * receives, 2 * receives - of_peer - of_stranger);
  CHECK(rest.size() + of_peer + of_stranger == 2 * receives);
}

TEST_CASE("datagrams that waited in the first socket are received before those of the second") {
  const auto link = open_link();
  RawUdp peer;
  for (const std::string& text : test::numbered(3)) REQUIRE(peer.send(link->local_address(), text));
  focus(*link, peer);
  REQUIRE(peer.send(link->local_address(), "number 3"));
  CHECK(receive(*link, 8, 4) == test::numbered(4));
}

TEST_CASE("a link that comes to be watched first gives out what only the second socket holds") {
  const auto link = open_link();
  RawUdp peer;
  focus(*link, peer);
  REQUIRE(peer.send(link->local_address(), "before"));
  wait_input_of_any(*link);
  CHECK_FALSE(link->set_watched(true));
  REQUIRE(peer.send(link->local_address(), "meanwhile"));
  CHECK(receive(*link, 1, 1) == Texts{"before"});
  CHECK(link->set_watched(true));
  CHECK_FALSE(link->focused());
  CHECK(test::wait_readable(link->descriptor()));
  CHECK(receive(*link, 1, 1) == Texts{"meanwhile"});
  REQUIRE(peer.send(link->local_address(), "after"));
  CHECK(test::wait_readable(link->descriptor()));
  CHECK(receive(*link, 1, 1) == Texts{"after"});
  // And it may begin again.
  focus(*link, peer);
  REQUIRE(peer.send(link->local_address(), "again"));
  CHECK(receive(*link, 2, 1) == Texts{"again"});
}

TEST_CASE("sends that go elsewhere for long end the preference, and nothing that came is lost") {
  const auto link = open_link();
  RawUdp first;
  RawUdp second;
  focus(*link, first);
  REQUIRE(first.send(link->local_address(), "before"));
  CHECK(send_to(*link, second, second.address(), kAfter).size() == kAfter);
  REQUIRE(first.send(link->local_address(), "behind"));
  CHECK(receive(*link, 4, 2) == Texts{"before", "behind"});
  CHECK_FALSE(link->focused());
  focus(*link, second);
  CHECK(send_to(*link, first, first.address(), 1) == Texts{"number 0"});
}

TEST_CASE("a peer that closes its socket and comes back is sent to all the time") {
  const auto link = open_link();
  Address at;
  {
    RawUdp peer;
    at = peer.address();
    focus(*link, peer);
  }
  for (int i = 0; i < 5; ++i) {
    const SendResult result = send_one(*link, at, "into the void");
    CHECK(result.status == SendStatus::ok);
    CHECK(result.sent == 1);
    CHECK(receive(*link, 1, 0).empty());
  }
  RawUdp back(at);
  CHECK(send_to(*link, back, at, 3) == test::numbered(3));
  REQUIRE(back.send(link->local_address(), "here again"));
  CHECK(receive(*link, 2, 1) == Texts{"here again"});
}

TEST_CASE(
    "the last datagrams of a peer that has gone are read though an error stands before them") {
  const auto link = open_link();
  Address at;
  {
    RawUdp peer;
    at = peer.address();
    focus(*link, peer);
    REQUIRE(peer.send(link->local_address(), "last bytes"));
  }
  REQUIRE(send_one(*link, at, "into the void").sent == 1);  // ICMP answers that nobody is there
  CHECK_FALSE(link->set_watched(true));
  CHECK(receive(*link, 2, 1) == Texts{"last bytes"});
  CHECK(link->set_watched(true));
}

TEST_CASE("a link that sends to itself does without") {
  const auto link = open_link();
  REQUIRE(link->set_watched(false));
  const Address me = link->local_address();
  for (size_t i = 0; i < 2 * kAfter; ++i) REQUIRE(send_one(*link, me, "me").sent == 1);
  CHECK_FALSE(link->focused());
  CHECK(receive(*link, 2 * kAfter, 2 * kAfter).size() == 2 * kAfter);
}

TEST_CASE("a datagram too long for the path is refused as by the first socket") {
  const auto link = open_link();
  RawUdp peer;
  focus(*link, peer);
  const std::string too_long(kMaxDatagram + 1, 'x');
  Texts payloads = {"first", too_long, "third"};
  const auto burst = test::burst_of(peer.address(), payloads);
  const SendResult result = link->send(burst.get());
  CHECK(result.status == SendStatus::refused);
  CHECK(result.sent == 1);
  CHECK(result.error == EMSGSIZE);
  CHECK(peer.receive()->bytes == "first");
  CHECK(send_to(*link, peer, peer.address(), 1) == Texts{"number 0"});
}

/// Whether somebody else's socket with these options may take the link's port.
bool can_be_bound(const Address& local, std::initializer_list<int> options) {
  UniqueFd fd(::socket(AF_INET, SOCK_DGRAM, 0));
  const int on = 1;
  for (int option : options) ::setsockopt(fd.get(), SOL_SOCKET, option, &on, sizeof on);
  sockaddr_storage name;
  const socklen_t length = local.to_sockaddr(name);
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) == 0;
}

TEST_CASE("the port stays closed to others whatever they ask for") {
  const auto link = open_link();
  RawUdp peer;
  const auto is_closed = [&] {
    const Address at = link->local_address();
    return !can_be_bound(at, {SO_REUSEPORT}) && !can_be_bound(at, {SO_REUSEADDR}) &&
           !can_be_bound(at, {SO_REUSEADDR, SO_REUSEPORT});
  };
  CHECK(is_closed());
  focus(*link, peer);
  CHECK(is_closed());
  CHECK(link->set_watched(true));
  CHECK(is_closed());
}

TEST_CASE("a link on all addresses can have a second socket and open groups in any order") {
  const bool group_first = GENERATE(true, false);
  const auto link = open_link(Address::any(AddressFamily::ipv4));
  RawUdp peer;
  const Address group = Address::parse("239.1.2.3").with_port(link->local_address().port());
  std::unique_ptr<DatagramLink> member;
  if (group_first) member = link->open_group(group, "lo");
  focus(*link, peer);
  if (!group_first) member = link->open_group(group, "lo");
  CHECK(send_to(*link, peer, peer.address(), 2) == test::numbered(2));
  const Address me = kLoopback4.with_port(link->local_address().port());
  REQUIRE(peer.send(me, "an answer"));
  CHECK(receive(*link, 2, 1) == Texts{"an answer"});
}

TEST_CASE("a link on all addresses hears the destination at each of them") {
  const auto link = open_link(Address::any(AddressFamily::ipv4));
  RawUdp peer;
  focus(*link, peer);
  const uint16_t port = link->local_address().port();
  REQUIRE(peer.send(Address::parse("127.0.0.1").with_port(port), "one"));
  REQUIRE(peer.send(Address::parse("127.0.0.2").with_port(port), "two"));
  Texts came = receive(*link, 2 * FocusedUdpLink::kReceivesPerLook, 2);
  std::sort(came.begin(), came.end());
  CHECK(came == Texts{"one", "two"});
}

TEST_CASE("IPv6 links connect to IPv6 hosts, and those on all addresses to IPv4 ones as well") {
  const bool mapped = GENERATE(false, true);
  const auto link = open_link(mapped ? Address::any(AddressFamily::ipv6) : kLoopback6);
  RawUdp peer(mapped ? kLoopback4 : kLoopback6);
  focus(*link, peer);
  const Address me = (mapped ? kLoopback4 : kLoopback6).with_port(link->local_address().port());
  REQUIRE(send_one(*link, peer.address(), "from the second").sent == 1);
  CHECK(peer.receive()->from == me);
  REQUIRE(peer.send(me, "an answer"));
  ReceiveBatch batch(8, 65536, 1024);
  for (int i = 0; i < 2 && batch.datagrams().empty(); ++i) {
    wait_input_of_any(*link);
    link->receive(batch);
  }
  REQUIRE(batch.datagrams().size() == 1);
  CHECK(batch.datagrams().front().from == peer.address());
}

TEST_CASE(
    "datagrams that the second socket had no room for are counted after it is closed as well") {
  const auto link = FocusedUdpLink::open(kLoopback4, {.receive_buffer = 4096}, kAfter);
  RawUdp peer;
  focus(*link, peer);
  const std::string payload(1000, 'x');
  for (int i = 0; i < 100; ++i) REQUIRE(peer.send(link->local_address(), payload));
  const size_t kept = receive(*link, 100, 1).size();
  REQUIRE(kept < 100);
  CHECK(link->set_watched(true));
  CHECK_FALSE(link->focused());
  CHECK(link->overflowed() == 100 - kept);
}

TEST_CASE("a thread that has gone to another network namespace keeps to the link's first socket") {
  const auto link = open_link();
  std::vector<Counter> told;
  link->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  told.clear();
  RawUdp peer;
  REQUIRE(link->set_watched(false));
  const bool ran = test::in_network_namespace([&] {
    CHECK(send_to(*link, peer, peer.address(), 4 * kAfter).size() == 4 * kAfter);
    CHECK_FALSE(link->focused());
  });
  if (!ran) return;
  CHECK(told == std::vector<Counter>{Counter::connect_refused});
  focus(*link, peer);
}

}  // namespace
}  // namespace diwarp::llp
