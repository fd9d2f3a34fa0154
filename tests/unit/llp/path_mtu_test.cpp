// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/path_mtu.h"

#include "raw_socket.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4, 9);
const Address kLoopback6 = Address::loopback(AddressFamily::ipv6, 9);

PathMtu from_anywhere() { return PathMtu(Address::any(AddressFamily::ipv4)); }

TEST_CASE("the largest datagram is the path MTU without the headers of IP and UDP") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    PathMtu mtu = from_anywhere();
    CHECK(mtu.max_datagram(kLoopback4) == 1500 - 20 - 8);
    CHECK(mtu.max_datagram(kLoopback6) == 1500 - 40 - 8);
    CHECK(mtu.max_datagram(Address::parse("[::ffff:127.0.0.1]:9")) == 1500 - 20 - 8);
  });
}

TEST_CASE("a path that carries less than every path should is taken at its word") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 300));
    PathMtu mtu = from_anywhere();
    CHECK(mtu.max_datagram(kLoopback4) == 300 - 20 - 8);
  });
}

TEST_CASE("the largest datagram is bounded by what UDP can carry") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 65536));
    PathMtu mtu = from_anywhere();
    CHECK(mtu.max_datagram(kLoopback4) == 65507);
    CHECK(mtu.max_datagram(kLoopback6) == 65487);
  });
}

TEST_CASE("a path MTU is remembered for the host, whatever the port, until forgotten") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 9000));
    PathMtu mtu = from_anywhere();
    CHECK(mtu.max_datagram(kLoopback4) == 8972);
    REQUIRE(test::set_mtu("lo", 2000));
    CHECK(mtu.max_datagram(kLoopback4) == 8972);
    CHECK(mtu.max_datagram(kLoopback4.with_port(10)) == 8972);
    CHECK(mtu.max_datagram(Address::parse("127.0.0.2:9")) == 1972);
    mtu.forget(kLoopback4.with_port(11));
    CHECK(mtu.max_datagram(kLoopback4) == 1972);
  });
}

TEST_CASE("hosts that share a place in the table are told apart") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    PathMtu mtu = from_anywhere();
    const auto host = [](uint32_t i) {
      return Address::parse("127.1." + std::to_string(i / 250) + "." + std::to_string(1 + i % 250));
    };
    constexpr uint32_t kHosts = 600;  // more than places
    for (uint32_t i = 0; i < kHosts; ++i) CHECK(mtu.max_datagram(host(i)) == 1472);
    REQUIRE(test::set_mtu("lo", 9000));
    size_t remembered = 0;
    for (uint32_t i = 0; i < kHosts; ++i) {
      const size_t payload = mtu.max_datagram(host(i));
      if (payload == 1472) ++remembered;
      if (payload != 1472) CHECK(payload == 8972);
    }
    CHECK(remembered > 0);
    CHECK(remembered <= 256);
  });
}

TEST_CASE("for a host that cannot be reached the largest datagram is what every path carries") {
  test::in_network_namespace([] {
    PathMtu mtu = from_anywhere();
    CHECK(mtu.max_datagram(Address::parse("192.0.2.1:9")) == 576 - 28);
    CHECK(mtu.max_datagram(Address::parse("[2001:db8::1]:9")) == 1280 - 48);
  });
}

}  // namespace
}  // namespace diwarp::llp
