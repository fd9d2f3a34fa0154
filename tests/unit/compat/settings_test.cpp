// SPDX-License-Identifier: Apache-2.0
#include "compat/common/settings.h"

#include <array>
#include <chrono>

#include "compat/common/addresses.h"
#include "compat/common/error.h"
#include "support/catch.h"

using namespace diwarp::compat;
using namespace std::chrono_literals;
using diwarp::Address;

TEST_CASE("Devices are read as NAME=ADDR, and what is none is left out") {
  const auto devices = parse_devices("a=127.0.0.1,nothing,=1.2.3.4,b=::1,c=text");
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].name == "a");
  CHECK(devices[0].address == Address::parse("127.0.0.1"));
  CHECK(devices[1].address == Address::parse("::1"));
  CHECK(parse_devices("").empty());
}

TEST_CASE("Durations have units, and are microseconds without one") {
  CHECK(parse_duration("50us") == 50us);
  CHECK(parse_duration("50") == 50us);
  CHECK(parse_duration("2ms") == 2ms);
  CHECK(parse_duration("1s") == 1s);
  CHECK(parse_duration("7ns") == 7ns);
  for (const char* none : {"", "x", "-1us", "5 us", "5hours", "99999999999s"})
    CHECK(parse_duration(none) == 0ns);
}

TEST_CASE("A GID is an IPv6 address, or an IPv4 address mapped into one") {
  for (const char* text : {"192.0.2.7", "2001:db8::7"}) {
    const Address address = Address::parse(text);
    CHECK(address_of_gid(gid_bytes(address)) == address);
  }
  CHECK(gid_bytes(Address::parse("192.0.2.7"))[10] == 0xff);
}

TEST_CASE("Loopback and link-local addresses have the last GIDs") {
  const std::array all{Address::parse("::1"), Address::parse("fe80::1"), Address::parse("fd00::1")};
  CHECK(gid_order(all).front() == all[2]);
  CHECK(gid_order(all).size() == 3);
}

TEST_CASE("An address of another family is refused") {
  sockaddr other{};
  other.sa_family = AF_UNIX;
  CHECK(length_of(&other) == 0);
  CHECK(length_of(nullptr) == 0);
  CHECK_THROWS_AS(address_of(&other), Refusal);
}
