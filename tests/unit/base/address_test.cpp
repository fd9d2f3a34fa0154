// SPDX-License-Identifier: Apache-2.0
#include "diwarp/address.h"

#include <net/if.h>
#include <netinet/in.h>

#include <cstring>
#include <unordered_set>
#include <vector>

#include "diwarp/error.h"
#include "support/catch.h"

using diwarp::Address;
using diwarp::AddressFamily;

namespace {

std::vector<uint8_t> bytes_of(const Address& address) {
  return {address.bytes().begin(), address.bytes().end()};
}

}  // namespace

TEST_CASE("an address without any text is 0.0.0.0 with port 0") {
  const Address address;
  CHECK(address.family() == AddressFamily::ipv4);
  CHECK(address.port() == 0);
  CHECK(address.is_any());
  CHECK(address.to_string() == "0.0.0.0");
}

TEST_CASE("an IPv4 address is read with and without a port") {
  const Address with = Address::parse("192.0.2.7:4791", 5);
  CHECK(with.family() == AddressFamily::ipv4);
  CHECK(bytes_of(with) == std::vector<uint8_t>{192, 0, 2, 7});
  CHECK(with.port() == 4791);
  CHECK(Address::parse("192.0.2.7", 5).port() == 5);
  CHECK(Address::parse("192.0.2.7:0", 5).port() == 0);
  CHECK(Address::parse("192.0.2.7:65535").port() == 65535);
}

TEST_CASE("an IPv6 address is read bare, in brackets and with a port") {
  const std::vector<uint8_t> expected = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
                                         0,    0,    0,    0,    0, 0, 0, 9};
  for (const char* text : {"2001:db8::9", "[2001:db8::9]", "[2001:db8::9]:77"}) {
    const Address address = Address::parse(text, 77);
    CHECK(address.family() == AddressFamily::ipv6);
    CHECK(bytes_of(address) == expected);
    CHECK(address.port() == 77);
    CHECK(address.scope_id() == 0);
  }
}

TEST_CASE("a scope is read as an interface name and as a number") {
  CHECK(Address::parse("fe80::1%lo").scope_id() == if_nametoindex("lo"));
  CHECK(Address::parse("[fe80::1%7654321]:9").scope_id() == 7654321);
}

TEST_CASE("text that is not a numeric address is refused with the accepted forms") {
  const char* text =
      GENERATE("", "localhost", "1.2.3", "1.2.3.4.5", "1.2.3.4:", "1.2.3.4:65536", "1.2.3.4:-1",
               "1.2.3.4:+1", "1.2.3.4:5x", " 1.2.3.4", "1.2.3.4 ", "256.1.1.1", "[::1", "::1]",
               "[::1]5", "[::1]:", "[1.2.3.4]:5", "[]:5", ":::", "fe80::1%",
               "fe80::1%no-such-interface", "fe80::1%0", "1.2.3.4%lo", ":5");
  CAPTURE(text);
  try {
    Address::parse(text);
    FAIL("accepted");
  } catch (const diwarp::Error& error) {
    CHECK(error.code() == diwarp::Errc::invalid_argument);
    CHECK(std::string(error.what()).find("[::1]:port") != std::string::npos);
  }
}

TEST_CASE("text behind a zero byte is not overlooked") {
  CHECK_THROWS_AS(Address::parse(std::string_view("1.2.3.4\0x", 9)), diwarp::Error);
}

TEST_CASE("an address is written as it is read") {
  const char* text = GENERATE("1.2.3.4", "1.2.3.4:5", "::1", "[::1]:5", "2001:db8::9",
                              "[fe80::1%7654321]:9", "fe80::1%7654321", "255.255.255.255:1");
  CHECK(Address::parse(text).to_string() == text);
}

TEST_CASE("a host is written without port and brackets") {
  CHECK(Address::parse("[::1]:5").host() == "::1");
  CHECK(Address::parse("1.2.3.4:5").host() == "1.2.3.4");
  CHECK(Address::parse("fe80::1%lo").host() == "fe80::1%lo");
}

TEST_CASE("an IPv4 socket address holds the port and the address in network order") {
  sockaddr_storage storage;
  const socklen_t length = Address::parse("192.0.2.7:258").to_sockaddr(storage);
  REQUIRE(length == sizeof(sockaddr_in));
  sockaddr_in filled;
  std::memcpy(&filled, &storage, sizeof filled);
  CHECK(filled.sin_family == AF_INET);
  const uint8_t port[] = {1, 2};
  const uint8_t host[] = {192, 0, 2, 7};
  CHECK(std::memcmp(&filled.sin_port, port, sizeof port) == 0);
  CHECK(std::memcmp(&filled.sin_addr, host, sizeof host) == 0);
}

TEST_CASE("an IPv6 socket address holds the scope too and comes back equal") {
  const Address address = Address::parse("[fe80::1%3]:258");
  sockaddr_storage storage;
  REQUIRE(address.to_sockaddr(storage) == sizeof(sockaddr_in6));
  sockaddr_in6 filled;
  std::memcpy(&filled, &storage, sizeof filled);
  CHECK(filled.sin6_scope_id == 3);
  CHECK(filled.sin6_port == htons(258));
  CHECK(Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage)) == address);
}

TEST_CASE("a socket address of another family is refused") {
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK_THROWS_AS(Address::from_sockaddr(&other), diwarp::Error);
}

TEST_CASE("addresses are told apart by host, port, scope and family") {
  const std::vector<Address> different = {
      Address::parse("1.2.3.4:5"),      Address::parse("1.2.3.4:6"),
      Address::parse("1.2.3.5:5"),      Address::parse("[::1]:5"),
      Address::parse("[fe80::1%1]:5"),  Address::parse("[fe80::1%2]:5"),
      Address::parse("[102:304::]:5"),  Address(),
      Address::any(AddressFamily::ipv6)};
  for (size_t i = 0; i < different.size(); ++i) {
    for (size_t j = 0; j < different.size(); ++j) CHECK((different[i] == different[j]) == (i == j));
  }
  const std::unordered_set<Address> set(different.begin(), different.end());
  CHECK(set.size() == different.size());
  CHECK(set.contains(Address::parse("1.2.3.4").with_port(5)));
}

TEST_CASE("hashes of neighbouring addresses and ports spread over few buckets") {
  std::unordered_set<size_t> low;
  for (uint16_t port = 1; port <= 256; ++port) {
    low.insert(std::hash<Address>{}(Address::loopback(AddressFamily::ipv4, port)) % 256);
  }
  CHECK(low.size() > 128);
}

TEST_CASE("loopback, any, multicast and broadcast addresses are known as such") {
  CHECK(Address::loopback(AddressFamily::ipv4).to_string() == "127.0.0.1");
  CHECK(Address::loopback(AddressFamily::ipv6, 9).to_string() == "[::1]:9");
  CHECK(Address::parse("127.9.9.9").is_loopback());
  CHECK(Address::parse("::1").is_loopback());
  CHECK_FALSE(Address::parse("::2").is_loopback());
  CHECK(Address::any(AddressFamily::ipv6, 7).is_any());
  CHECK_FALSE(Address::parse("::1").is_any());
  CHECK(Address::parse("224.0.0.1").is_multicast());
  CHECK(Address::parse("239.255.255.255").is_multicast());
  CHECK_FALSE(Address::parse("223.255.255.255").is_multicast());
  CHECK_FALSE(Address::parse("240.0.0.1").is_multicast());
  CHECK(Address::parse("ff02::1%1").is_multicast());
  CHECK_FALSE(Address::parse("fe80::1%1").is_multicast());
  CHECK(Address::parse("255.255.255.255:5").is_broadcast());
  CHECK_FALSE(Address::parse("255.255.255.254").is_broadcast());
  CHECK_FALSE(Address::parse("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").is_broadcast());
}
