// SPDX-License-Identifier: Apache-2.0
#include "dgram/address_validation.h"

#include <algorithm>

#include "support/catch.h"

using namespace diwarp;
using namespace std::chrono_literals;
using dgram::AddressValidation;
using dgram::Cookie;

namespace {

const SipKey kKey{1, 2};
const Address kSource = Address::parse("10.0.0.1:4000");
constexpr uint32_t kIncarnation = 77;
constexpr Time kNow{1000s};

}  // namespace

TEST_CASE(
    "a cookie is good for the address, port and incarnation that it was made for, and no other") {
  const AddressValidation validation(kKey);
  const Cookie cookie = validation.make(kSource, kIncarnation, kNow);
  CHECK(validation.valid(cookie, kSource, kIncarnation, kNow));
  CHECK_FALSE(validation.valid(cookie, kSource.with_port(4001), kIncarnation, kNow));
  CHECK_FALSE(validation.valid(cookie, Address::parse("10.0.0.2:4000"), kIncarnation, kNow));
  // The same bytes, and zeros behind them.
  CHECK_FALSE(validation.valid(cookie, Address::parse("[a00:1::]:4000"), kIncarnation, kNow));
  CHECK_FALSE(validation.valid(cookie, kSource, kIncarnation + 1, kNow));
}

TEST_CASE("a guess at one half of a cookie tells nothing of the other half") {
  const Cookie cookie = AddressValidation(kKey).make(kSource, kIncarnation, kNow);
  const auto middle = cookie.begin() + cookie.size() / 2;
  CHECK_FALSE(std::equal(cookie.begin(), middle, middle));
}

TEST_CASE("the same IPv6 address on another link needs another cookie") {
  const AddressValidation validation(kKey);
  const Cookie cookie = validation.make(Address::parse("[fe80::1%1]:9"), kIncarnation, kNow);
  CHECK(validation.valid(cookie, Address::parse("[fe80::1%1]:9"), kIncarnation, kNow));
  CHECK_FALSE(validation.valid(cookie, Address::parse("[fe80::1%2]:9"), kIncarnation, kNow));
}

TEST_CASE("a cookie is good for 30 to 60 seconds") {
  const AddressValidation validation(kKey);
  for (const Duration start : {0s, 1s, 15s, 29s}) {
    const Time made = Time(300s) + start;  // 300 s begin a slot
    const Cookie cookie = validation.make(kSource, kIncarnation, made);
    CHECK(validation.valid(cookie, kSource, kIncarnation, made + 30s));
    CHECK(validation.valid(cookie, kSource, kIncarnation, Time(360s) - 1ns));
    CHECK_FALSE(validation.valid(cookie, kSource, kIncarnation, made + 60s));
    CHECK_FALSE(validation.valid(cookie, kSource, kIncarnation, Time(300s) - 1ns));
  }
}

TEST_CASE("a cookie with any bit changed, or of another key, is not good") {
  const AddressValidation validation(kKey);
  const Cookie cookie = validation.make(kSource, kIncarnation, kNow);
  for (size_t bit = 0; bit < cookie.size() * 8; ++bit) {
    Cookie changed = cookie;
    changed[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    CHECK_FALSE(validation.valid(changed, kSource, kIncarnation, kNow));
  }
  CHECK_FALSE(AddressValidation({1, 3}).valid(cookie, kSource, kIncarnation, kNow));
  CHECK_FALSE(AddressValidation({2, 2}).valid(cookie, kSource, kIncarnation, kNow));
  CHECK_FALSE(validation.valid({}, kSource, kIncarnation, kNow));
}
