// SPDX-License-Identifier: Apache-2.0
#include "base/keyed_hash.h"

#include <set>
#include <vector>

#include "diwarp/address.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

constexpr size_t kBuckets = 1021;

Address nth(uint32_t n) {
  const std::string host = "10." + std::to_string(n >> 16 & 255) + "." +
                           std::to_string(n >> 8 & 255) + "." + std::to_string(n & 255);
  return Address::parse(host, 4791);
}

}  // namespace

TEST_CASE("a keyed hash depends on all of the value and on the key") {
  const KeyedHash<Address> hash(SipKey{1, 2});
  const Address address = Address::parse("192.0.2.1", 5000);
  CHECK(hash(address) == KeyedHash<Address>(SipKey{1, 2})(address));
  CHECK(hash(address) != hash(address.with_port(5001)));
  CHECK(hash(address) != hash(Address::parse("192.0.2.2", 5000)));
  CHECK(hash(address) != KeyedHash<Address>(SipKey{1, 3})(address));
  CHECK(hash(Address::parse("fe80::1%1")) != hash(Address::parse("fe80::1%2")));
}

TEST_CASE("addresses chosen to share a bucket under one key are spread under another") {
  const KeyedHash<Address> known(SipKey{1, 2});
  const KeyedHash<Address> secret(SipKey{3, 4});
  std::set<size_t> buckets;
  size_t chosen = 0;
  for (uint32_t n = 0; chosen < 200; ++n) {
    if (known(nth(n)) % kBuckets != 7) continue;
    ++chosen;
    buckets.insert(secret(nth(n)) % kBuckets);
  }
  CHECK(buckets.size() > 150);
}
