// SPDX-License-Identifier: Apache-2.0
#include "dgram/identity.h"

#include <set>

#include "support/catch.h"

using namespace diwarp;
using dgram::Identity;

namespace {

const Address kOne = Address::parse("10.0.0.1:4000");
const SipKey kSecret{1, 2};

}  // namespace

TEST_CASE("identity: each address, port and scope is shown an incarnation of its own") {
  Identity identity(kSecret);
  const uint32_t shown = identity.incarnation(kOne);
  for (const char* other : {"10.0.0.1:4001", "10.0.0.2:4000", "[::ffff:10.0.0.1]:4000",
                            "[fe80::1%1]:4000", "[fe80::1%2]:4000"})
    CHECK(identity.incarnation(Address::parse(other)) != shown);
  CHECK(identity.incarnation(kOne) == shown);
  CHECK(identity.incarnation(Address::parse("[fe80::1%1]:4000")) !=
        identity.incarnation(Address::parse("[fe80::1%2]:4000")));
}

TEST_CASE("identity: another secret makes another source") {
  Identity one(kSecret);
  Identity other(SipKey{1, 3});
  CHECK(one.incarnation(kOne) != other.incarnation(kOne));
}

TEST_CASE("identity: no incarnation is 0, and they look random") {
  std::set<uint32_t> all;
  Identity identity(kSecret);
  uint32_t ones = 0;
  for (uint16_t port = 1; port <= 2000; ++port) {
    const uint32_t shown = identity.incarnation(kOne.with_port(port));
    CHECK(shown != 0);
    ones += shown & 1;
    all.insert(shown);
  }
  CHECK(all.size() == 2000);
  CHECK(ones > 850);
  CHECK(ones < 1150);
}

TEST_CASE("identity: a peer's epochs are counted from a start that others cannot tell") {
  Identity identity(kSecret);
  const uint32_t first = identity.next_epoch(kOne);
  const uint32_t others = identity.next_epoch(kOne.with_port(1));
  const uint32_t second = identity.next_epoch(kOne);
  CHECK(second == first + 2);  // one was another peer's
  CHECK(others - first != 1);
  Identity wrapping(kSecret);
  for (int i = 0; i < 10000; ++i) CHECK(wrapping.next_epoch(kOne) != 0);
}

TEST_CASE("identity: nonces do not come twice") {
  std::set<uint64_t> all;
  Identity identity(kSecret);
  for (int i = 0; i < 1000; ++i) all.insert(identity.next_nonce());
  CHECK(all.size() == 1000);
}
