// SPDX-License-Identifier: Apache-2.0
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>

#include "backends.h"
#include "datagrams.h"
#include "diwarp/error.h"
#include "llp/udp/udp_link.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

using test::option_of;
using test::RawUdp;
using test::receive_texts;
using test::send_one;

using Texts = std::vector<std::string>;

const Address kGroup = Address::parse("239.77.1.2");
const Address kSubnetBroadcast = Address::parse("127.255.255.255");

Address loop(int number, uint16_t port = 0) {
  return Address::parse("127.0.0." + std::to_string(number)).with_port(port);
}

/// Addresses of this host's loopback on one port, a link each.
template <class TestType>
struct Links {
  explicit Links(const UdpOptions& options = {})
      : a(TestType::open(loop(1), options)),
        b(TestType::open(loop(2, a->local_address().port()), options)),
        c(TestType::open(loop(3, a->local_address().port()), options)) {}

  Address on_port(const Address& group) const { return group.with_port(a->local_address().port()); }

  std::unique_ptr<UdpLink> a;
  std::unique_ptr<UdpLink> b;
  std::unique_ptr<UdpLink> c;
  ReceiveBatch batch{2, 65536, 256};
};

/// The datagrams that came, after one that was sent later to the link's own address: loopback keeps
/// order.
template <class TestType>
Texts waiting(Links<TestType>& net, DatagramLink& link) {
  link.receive(net.batch);
  return test::texts(net.batch);
}

std::error_code open_group_error(DatagramLink& link, const Address& group,
                                 std::string_view interface = "") {
  try {
    link.open_group(group, interface);
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() > 30);
    return error.code();
  }
  FAIL("open_group() did not throw");
  return {};
}

BACKENDS_TEST_CASE(
    "members of a multicast group on one host all receive what is sent to it, marked") {
  Links<TestType> net;
  const auto at_a = net.a->open_group(kGroup, "");
  const auto at_b = net.b->open_group(kGroup, "lo");
  CHECK(at_b->local_address() == net.on_port(kGroup));
  REQUIRE(send_one(*net.a, net.on_port(kGroup), "all").status == SendStatus::ok);
  REQUIRE(receive_texts(*at_b, net.batch, 1) == Texts{"all"});
  CHECK(net.batch.datagrams()[0].from == net.a->local_address());
  CHECK(net.batch.datagrams()[0].group);
  CHECK(receive_texts(*at_a, net.batch, 1) == Texts{"all"});
  for (UdpLink* link : {net.a.get(), net.b.get(), net.c.get()}) CHECK(waiting(net, *link).empty());
}

BACKENDS_TEST_CASE("a datagram to a member's own address did not come to the group") {
  Links<TestType> net;
  const auto at_b = net.b->open_group(kGroup, "");
  send_one(*net.a, net.b->local_address(), "you");
  REQUIRE(receive_texts(*net.b, net.batch, 1) == Texts{"you"});
  CHECK_FALSE(net.batch.datagrams()[0].group);
  CHECK(waiting(net, *at_b).empty());
}

BACKENDS_TEST_CASE("a multicast group that is left receives nothing any more") {
  Links<TestType> net;
  auto at_b = net.b->open_group(kGroup, "");
  const auto at_c = net.c->open_group(kGroup, "");
  const int fd = at_b->descriptor();
  at_b.reset();
  CHECK_FALSE(test::is_open(fd));
  send_one(*net.a, net.on_port(kGroup), "x");
  CHECK(receive_texts(*at_c, net.batch, 1) == Texts{"x"});
  at_b = net.b->open_group(kGroup, "");
  CHECK(waiting(net, *at_b).empty());
}

BACKENDS_TEST_CASE("a link hears no multicast group that another socket of its port has joined") {
  const auto everywhere = TestType::open(Address::any(AddressFamily::ipv4));
  const uint16_t port = everywhere->local_address().port();
  const auto sender = TestType::open(loop(1));
  const auto at_group = everywhere->open_group(kGroup, "lo");
  const auto at_other = everywhere->open_group(Address::parse("239.77.1.3"), "lo");
  REQUIRE(send_one(*sender, kGroup.with_port(port), "x").status == SendStatus::ok);
  ReceiveBatch batch(1, 65536, 128);
  CHECK(receive_texts(*at_group, batch, 1) == Texts{"x"});
  CHECK(everywhere->receive(batch) == 0);
  CHECK(at_other->receive(batch) == 0);
}

BACKENDS_TEST_CASE("trains to a multicast group reach each member whole") {
  Links<TestType> net;
  const auto at_b = net.b->open_group(kGroup, "");
  const auto at_c = net.c->open_group(kGroup, "");
  Texts payloads;
  for (int i = 0; i < 20; ++i) payloads.push_back(std::string(1000, static_cast<char>('a' + i)));
  const test::Burst burst = test::burst_of(net.on_port(kGroup), payloads);
  REQUIRE(net.a->send(burst.get()).sent == 20);
  CHECK(receive_texts(*at_b, net.batch, 20) == payloads);
  CHECK(receive_texts(*at_c, net.batch, 20) == payloads);
}

BACKENDS_TEST_CASE(
    "a subnet's broadcasts reach the links that opened its address, and are marked") {
  Links<TestType> net;
  const auto at_a = net.a->open_group(kSubnetBroadcast, "");
  const auto at_b = net.b->open_group(kSubnetBroadcast, "lo");
  const SendResult sent = send_one(*net.a, net.on_port(kSubnetBroadcast), "all");
  REQUIRE(sent.status == SendStatus::ok);
  REQUIRE(receive_texts(*at_b, net.batch, 1) == Texts{"all"});
  CHECK(net.batch.datagrams()[0].group);
  CHECK(net.batch.datagrams()[0].from == net.a->local_address());
  CHECK(receive_texts(*at_a, net.batch, 1) == Texts{"all"});
  CHECK(waiting(net, *net.c).empty());
}

BACKENDS_TEST_CASE(
    "a link on all addresses leaves broadcasts to the broadcast address's own link") {
  for (AddressFamily family : {AddressFamily::ipv4, AddressFamily::ipv6}) {
    const auto everywhere = TestType::open(Address::any(family));
    const uint16_t port = everywhere->local_address().port();
    const auto sender = TestType::open(loop(1));
    ReceiveBatch batch(1, 65536, 128);
    // Nobody opened the address: nobody gets it.
    REQUIRE(send_one(*sender, kSubnetBroadcast.with_port(port), "lost").status == SendStatus::ok);
    send_one(*sender, loop(5, port), "own");
    REQUIRE(receive_texts(*everywhere, batch, 1) == Texts{"own"});
    CHECK_FALSE(batch.datagrams()[0].group);

    const auto group = everywhere->open_group(kSubnetBroadcast, "");
    send_one(*sender, kSubnetBroadcast.with_port(port), "all");
    CHECK(receive_texts(*group, batch, 1) == Texts{"all"});
    CHECK(batch.datagrams()[0].group);
    CHECK(everywhere->receive(batch) == 0);
  }
}

BACKENDS_TEST_CASE("opening a group beside a link on all addresses leaves its port to it alone") {
  const auto everywhere = TestType::open(Address::any(AddressFamily::ipv4));
  const uint16_t port = everywhere->local_address().port();
  const auto group = everywhere->open_group(kGroup, "lo");
  CHECK(option_of(everywhere->descriptor(), SOL_SOCKET, SO_REUSEADDR) == 0);
  const UniqueFd thief(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  REQUIRE(::setsockopt(thief.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0);
  sockaddr_storage name;
  const socklen_t length = loop(1, port).to_sockaddr(name);
  CHECK(::bind(thief.get(), reinterpret_cast<sockaddr*>(&name), length) != 0);
}

BACKENDS_TEST_CASE("the options of multicast reach the socket") {
  const auto link = TestType::open(loop(1), {.multicast_hops = 7, .multicast_loopback = false});
  const int fd = link->descriptor();
  CHECK(option_of(fd, IPPROTO_IP, IP_MULTICAST_TTL) == 7);
  CHECK(option_of(fd, IPPROTO_IP, IP_MULTICAST_LOOP) == 0);
  CHECK(option_of(fd, IPPROTO_IP, IP_MULTICAST_ALL) == 0);
  const auto usual = TestType::open(Address::any(AddressFamily::ipv6));
  CHECK(option_of(usual->descriptor(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS) == 1);
  CHECK(option_of(usual->descriptor(), IPPROTO_IPV6, IPV6_MULTICAST_LOOP) == 1);
  CHECK(option_of(usual->descriptor(), IPPROTO_IP, IP_MULTICAST_TTL) == 1);
}

BACKENDS_TEST_CASE(
    "an address that is no group of this host is refused with a message, whatever its port") {
  const auto link = TestType::open(loop(1));
  for (const char* text : {"127.0.0.1", "0.0.0.0", "198.51.100.255", "223.1.2.3", "127.0.0.255"}) {
    CAPTURE(text);
    CHECK(open_group_error(*link, Address::parse(text)) == Errc::invalid_argument);
  }
  CHECK(open_group_error(*link, Address::parse("[ff02::1]:5")) == Errc::invalid_argument);
  CHECK(open_group_error(*link, kGroup, "no-such-if") == Errc::invalid_argument);
  const auto six = TestType::open(Address::loopback(AddressFamily::ipv6));
  CHECK(open_group_error(*six, kGroup) == Errc::invalid_argument);
  CHECK(open_group_error(*six, Address::parse("::1")) == Errc::invalid_argument);
}

BACKENDS_TEST_CASE(
    "a multicast interface that does not exist is refused, and a descriptor stays open") {
  const UdpOptions options{.multicast_interface = "no-such-if"};
  CHECK_THROWS_AS(TestType::open(loop(1), options), Error);
  RawUdp raw;
  CHECK_THROWS_AS(TestType::adopt(raw.fd(), options), Error);
  CHECK(test::is_open(raw.fd()));
}

BACKENDS_TEST_CASE("a group's port that an unsharing socket holds is refused with its address") {
  Links<TestType> net;
  const RawUdp holder(net.on_port(kGroup));
  CHECK(open_group_error(*net.a, kGroup) == Errc::address_in_use);
}

/// Runs `body` in a namespace with an interface "d0" that has 10.9.0.1, 10.9.0.2 and fd77::1.
void with_interface(const std::function<void()>& body) {
  test::in_network_namespace([&] {
    const char* setup =
        "ip link add d0 type veth peer name d1 2>/dev/null && ip link set d1 up && "
        "ip addr add 10.9.0.1/24 brd + dev d0 && ip addr add 10.9.0.2/24 dev d0 && "
        "ip addr add fd77::1/64 dev d0 nodad && ip link set d0 up && "
        // IPv6 comes up a moment after the link: its multicast route is the last thing it makes.
        "for try in $(seq 1000); do"
        "  ip -6 route show table all | grep -q 'multicast ff00::/8 dev d0' && break; sleep 0.01;"
        "done";
    if (std::system(setup) == 0) return body();
    std::cout << "SKIPPED: no veth interface can be made (or there is no `ip`)\n";
  });
}

BACKENDS_TEST_CASE("members of an IPv6 multicast group receive what is sent to it") {
  with_interface([] {
    const auto a = TestType::open(Address::parse("fd77::1"));
    const uint16_t port = a->local_address().port();
    const auto near = a->open_group(Address::parse("ff02::7:7"), "");
    const auto wide = a->open_group(Address::parse("ff05::9"), "d0");
    ReceiveBatch batch(1, 65536, 128);
    REQUIRE(send_one(*a, Address::parse("ff02::7:7").with_port(port), "six").sent == 1);
    REQUIRE(receive_texts(*near, batch, 1) == Texts{"six"});
    CHECK(batch.datagrams()[0].group);
    CHECK(batch.datagrams()[0].from == a->local_address());
    REQUIRE(send_one(*a, Address::parse("ff05::9").with_port(port), "wide").sent == 1);
    CHECK(receive_texts(*wide, batch, 1) == Texts{"wide"});
    CHECK(near->receive(batch) == 0);
    CHECK(a->max_datagram(Address::parse("ff05::9")) == 1452);
  });
}

BACKENDS_TEST_CASE("a link on all IPv6 addresses joins groups of both families") {
  with_interface([] {
    const auto everywhere = TestType::open(Address::any(AddressFamily::ipv6));
    const uint16_t port = everywhere->local_address().port();
    const auto at_four = everywhere->open_group(kGroup, "d0");
    const auto at_six = everywhere->open_group(Address::parse("ff05::a"), "d0");
    const auto four = TestType::open(Address::parse("10.9.0.1"));
    const auto six = TestType::open(Address::parse("fd77::1"));
    REQUIRE(send_one(*four, kGroup.with_port(port), "4").sent == 1);
    REQUIRE(send_one(*six, Address::parse("ff05::a").with_port(port), "6").sent == 1);
    ReceiveBatch batch(1, 65536, 128);
    CHECK(receive_texts(*at_four, batch, 1) == Texts{"4"});
    CHECK(receive_texts(*at_six, batch, 1) == Texts{"6"});
    CHECK(everywhere->receive(batch) == 0);
  });
}

/// A socket that has joined a group itself.
int socket_in_group(const Address& local, const Address& group) {
  RawUdp raw(local);
  if (group.family() == AddressFamily::ipv4) {
    ip_mreqn request{};
    std::memcpy(&request.imr_multiaddr, group.bytes().data(), 4);
    request.imr_address.s_addr = htonl(0x0A090001);  // of d0
    REQUIRE(::setsockopt(raw.fd(), IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof request) == 0);
  } else {
    ipv6_mreq request{};
    std::memcpy(&request.ipv6mr_multiaddr, group.bytes().data(), 16);
    request.ipv6mr_interface = ::if_nametoindex("d0");
    REQUIRE(::setsockopt(raw.fd(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &request, sizeof request) ==
            0);
  }
  return raw.release();
}

BACKENDS_TEST_CASE(
    "an adopted socket's own groups are heard by nobody, unless it is bound to one") {
  with_interface([] {
    ReceiveBatch batch(1, 65536, 128);
    for (const char* host : {"10.9.0.1", "fd77::1"}) {
      CAPTURE(host);
      const Address own = Address::parse(host);
      const Address group = Address::parse(host[0] == 'f' ? "ff05::c" : "239.77.1.5");
      const auto sender = TestType::open(own);
      const auto everywhere = TestType::adopt(socket_in_group(Address::any(own.family()), group));
      const uint16_t port = everywhere->local_address().port();
      REQUIRE(send_one(*sender, group.with_port(port), "group").sent == 1);
      REQUIRE(send_one(*sender, own.with_port(port), "own").sent == 1);
      CHECK(receive_texts(*everywhere, batch, 1) == Texts{"own"});

      const auto bound = TestType::adopt(socket_in_group(group, group));
      REQUIRE(send_one(*sender, bound->local_address(), "bound").sent == 1);
      REQUIRE(receive_texts(*bound, batch, 1) == Texts{"bound"});
      CHECK(batch.datagrams()[0].group);
    }
  });
}

BACKENDS_TEST_CASE("without loopback no member on the sender's host hears its multicasts") {
  with_interface([] {
    for (const char* host : {"10.9.0.1", "fd77::1"}) {
      CAPTURE(host);
      const Address group = Address::parse(host[0] == 'f' ? "ff05::b" : "239.77.1.4");
      const auto quiet = TestType::open(Address::parse(host), {.multicast_loopback = false});
      const uint16_t port = quiet->local_address().port();
      const auto loud = TestType::open(Address::parse(host));
      const auto member = quiet->open_group(group, "");
      REQUIRE(send_one(*quiet, group.with_port(port), "silent").sent == 1);
      REQUIRE(send_one(*loud, group.with_port(port), "loud").sent == 1);
      ReceiveBatch batch(2, 65536, 256);
      CHECK(receive_texts(*member, batch, 1) == Texts{"loud"});
    }
  });
}

BACKENDS_TEST_CASE(
    "limited and subnet broadcasts reach the link of their address, on its interface") {
  with_interface([] {
    const auto a = TestType::open(Address::parse("10.9.0.1"));
    const uint16_t port = a->local_address().port();
    const auto b = TestType::open(Address::parse("10.9.0.2").with_port(port));
    const auto elsewhere = TestType::open(loop(1, port));
    ReceiveBatch batch(2, 65536, 256);
    for (const char* text : {"255.255.255.255", "10.9.0.255"}) {
      CAPTURE(text);
      const Address group = Address::parse(text);
      const auto at_b = b->open_group(group, "");
      const auto at_lo = elsewhere->open_group(group, "");
      REQUIRE(send_one(*a, group.with_port(port), text).sent == 1);
      REQUIRE(receive_texts(*at_b, batch, 1) == Texts{text});
      CHECK(batch.datagrams()[0].group);
      CHECK(batch.datagrams()[0].from == a->local_address());
      CHECK(at_lo->receive(batch) == 0);
    }
    // The payload of one wire packet, for multicast and broadcast as well.
    CHECK(a->max_datagram(Address::parse("10.9.0.255:1")) == 1472);
    CHECK(a->max_datagram(Address::parse("239.1.1.1:1")) == 1472);
  });
}

BACKENDS_TEST_CASE(
    "a link that fragments offers whole datagrams, and sends them over a small MTU") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    const auto link = TestType::open(loop(1), {.fragment = true});
    const auto plain = TestType::open(loop(1));
    RawUdp peer(loop(2));
    CHECK(link->max_datagram(peer.address()) == kMaxDatagram);
    CHECK(link->max_datagram(Address::parse("[::1]:5")) == kMaxDatagramIpv6);
    CHECK(plain->max_datagram(peer.address()) == 1472);
    const std::string large(kMaxDatagram, 'j');
    CHECK(send_one(*plain, peer.address(), large).status == SendStatus::refused);
    REQUIRE(send_one(*link, peer.address(), large).status == SendStatus::ok);
    CHECK(peer.receive()->bytes == large);
    // Several at once, none of them a train: UDP_SEGMENT would refuse them.
    const test::Burst burst = test::burst_of(peer.address(), Texts(3, std::string(9000, 'k')));
    REQUIRE(link->send(burst.get()).sent == 3);
    for (int i = 0; i < 3; ++i) CHECK(peer.receive()->bytes.size() == 9000);
    CHECK(link->gso());
  });
}

}  // namespace
}  // namespace diwarp::llp
