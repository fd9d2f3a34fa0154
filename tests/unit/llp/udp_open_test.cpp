// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends.h"
#include "datagrams.h"
#include "diwarp/error.h"
#include "llp/udp/udp_link.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/descriptors.h"
#include "support/sanitizers.h"

namespace diwarp::llp {
namespace {

using test::option_of;
using test::RawUdp;
using test::receive_texts;
using test::send_one;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
const Address kLoopback6 = Address::loopback(AddressFamily::ipv6);

bool same_host(const Address& a, const Address& b) { return a.with_port(0) == b.with_port(0); }

/// What open() throws.
template <class TestType>
Error open_error(const Address& local) {
  try {
    TestType::open(local);
  } catch (const Error& error) {
    return error;
  }
  FAIL("open() did not throw");
  return Error(Errc::invalid_argument, "");
}

BACKENDS_TEST_CASE("a UDP link reports the port that the system chose") {
  const auto link = TestType::open(kLoopback4);
  CHECK(same_host(link->local_address(), kLoopback4));
  CHECK(link->local_address().port() != 0);
}

// UndefinedBehaviorSanitizer needs descriptors to look at the type of what is thrown.
#if !defined(DIWARP_ADDRESS_SANITIZER)
TEST_CASE("a process without descriptors is told to raise their limit") {
  const Error error = [] {
    const test::DescriptorLimit none(0);
    return open_error<test::Calls>(kLoopback4);
  }();
  CHECK(error.code() == std::errc::too_many_files_open);
  CHECK(std::string_view(error.what()).find("ulimit -n") != std::string_view::npos);
}
#endif

BACKENDS_TEST_CASE("a UDP link's descriptor is non-blocking and closed on exec") {
  const auto link = TestType::open(kLoopback4);
  CHECK((::fcntl(link->descriptor(), F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(link->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

BACKENDS_TEST_CASE("a UDP link asks for its socket buffers and for path MTU discovery") {
  UdpOptions options;
  options.receive_buffer = 50000;
  options.send_buffer = 60000;
  const auto link = TestType::open(kLoopback4, options);
  const int fd = link->descriptor();
  // The kernel doubles what it is asked for, socket(7).
  CHECK(option_of(fd, SOL_SOCKET, SO_RCVBUF) == 100000);
  CHECK(option_of(fd, SOL_SOCKET, SO_SNDBUF) == 120000);
  CHECK(option_of(fd, IPPROTO_IP, IP_MTU_DISCOVER) == IP_PMTUDISC_DO);
  CHECK(option_of(fd, SOL_SOCKET, SO_BROADCAST) == 1);
}

BACKENDS_TEST_CASE("a UDP link fragments and broadcasts only when it is told to") {
  UdpOptions options;
  options.fragment = true;
  options.broadcast = true;
  const auto link = TestType::open(kLoopback6, options);
  const int fd = link->descriptor();
  CHECK(option_of(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER) == IPV6_PMTUDISC_WANT);
  CHECK(option_of(fd, SOL_SOCKET, SO_BROADCAST) == 1);
}

BACKENDS_TEST_CASE("opening a UDP address that is in use says which one") {
  const RawUdp holder;
  const Error error = open_error<TestType>(holder.address());
  CHECK(error.code() == Errc::address_in_use);
  CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(holder.address().to_string()));
}

BACKENDS_TEST_CASE("opening a UDP address that is not this host's says which one") {
  const Error error = open_error<TestType>(Address::parse("192.0.2.77:4000"));
  CHECK(error.code() == std::errc::address_not_available);
  CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("192.0.2.77:4000"));
}

BACKENDS_TEST_CASE("an IPv6 UDP link exchanges datagrams over IPv6 alone") {
  const auto link = TestType::open(kLoopback6);
  CHECK(option_of(link->descriptor(), IPPROTO_IPV6, IPV6_V6ONLY) == 1);
  CHECK(option_of(link->descriptor(), IPPROTO_IPV6, IPV6_MTU_DISCOVER) == IPV6_PMTUDISC_DO);
  RawUdp peer(kLoopback6);
  CHECK(send_one(*link, peer.address(), "six").status == SendStatus::ok);
  const auto arrived = peer.receive();
  REQUIRE(arrived);
  CHECK(arrived->bytes == "six");
  CHECK(arrived->from == link->local_address());

  ReceiveBatch batch(1, 65536, 128);
  REQUIRE(peer.send(link->local_address(), "back"));
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"back"});
  CHECK(batch.datagrams()[0].from == peer.address());
}

BACKENDS_TEST_CASE("a UDP link on any IPv6 address serves IPv4 peers by their IPv4 addresses") {
  const auto link = TestType::open(Address::any(AddressFamily::ipv6));
  const uint16_t port = link->local_address().port();
  ReceiveBatch batch(1, 65536, 128);
  for (const Address& host : {kLoopback4, kLoopback6}) {
    RawUdp peer(host);
    REQUIRE(peer.send(host.with_port(port), "in"));
    REQUIRE(receive_texts(*link, batch, 1) == std::vector<std::string>{"in"});
    const Address from = batch.datagrams()[0].from;
    CHECK(from == peer.address());

    CHECK(send_one(*link, from, "out").status == SendStatus::ok);
    const auto arrived = peer.receive();
    REQUIRE(arrived);
    CHECK(arrived->bytes == "out");
    CHECK(arrived->from == host.with_port(port));
  }
}

BACKENDS_TEST_CASE(
    "a destination of the other family is refused, and the burst can go on after it") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  test::Burst burst;
  burst.add(peer.address(), "before");
  burst.add(Address::parse("[2001:db8::1]:9"), "lost");
  burst.add(peer.address(), "after");
  const SendResult result = link->send(burst.get());
  CHECK(result.sent == 1);
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error != 0);
  CHECK(link->send(burst.get().subspan(2)).sent == 1);
  CHECK(peer.receive()->bytes == "before");
  CHECK(peer.receive()->bytes == "after");
}

BACKENDS_TEST_CASE("a UDP link adopts a bound descriptor, and closes it at the end") {
  RawUdp raw;
  RawUdp peer;
  const Address address = raw.address();
  const int fd = raw.release();
  {
    const auto link = TestType::adopt(fd);
    CHECK(link->descriptor() == fd);
    CHECK(link->local_address() == address);
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(send_one(*link, peer.address(), "adopted").status == SendStatus::ok);
    CHECK(peer.receive()->from == address);
  }
  CHECK_FALSE(test::is_open(fd));
}

BACKENDS_TEST_CASE("a datagram that waits on an adopted UDP descriptor is received") {
  RawUdp raw;
  RawUdp peer;
  REQUIRE(peer.send(raw.address(), "early"));
  const auto link = TestType::adopt(raw.release());
  ReceiveBatch batch(1, 65536, 128);
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"early"});
  CHECK(link->overflowed() == 0);
}

/// adopt() must refuse the descriptor, name it, and leave it open.
template <class Link>
void check_refused(int fd) {
  try {
    Link::adopt(fd);
    FAIL("adopt() did not throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::invalid_argument);
    CHECK_THAT(error.what(),
               Catch::Matchers::ContainsSubstring("Descriptor " + std::to_string(fd) + " "));
  }
  if (fd >= 0) CHECK(test::is_open(fd));
}

BACKENDS_TEST_CASE("descriptors that are no bound UDP sockets are not adopted, and stay open") {
  check_refused<TestType>(-1);
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const UniqueFd read_end(pipe_ends[0]);
  const UniqueFd write_end(pipe_ends[1]);
  check_refused<TestType>(read_end.get());
  const UniqueFd unbound(::socket(AF_INET, SOCK_DGRAM, 0));
  check_refused<TestType>(unbound.get());
  const UniqueFd local(::socket(AF_UNIX, SOCK_DGRAM, 0));
  check_refused<TestType>(local.get());
  const auto [tcp, peer] = test::tcp_pair();
  check_refused<TestType>(tcp.get());
}

}  // namespace
}  // namespace diwarp::llp
