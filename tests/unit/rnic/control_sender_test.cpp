// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/control_sender.h"

#include "parts.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

const Address kPeer = Address::parse("10.0.0.1:7");
const rdmap::ErrorReport kError{.code = {1, 1, 0}};

}  // namespace

TEST_CASE("a Challenge that would be longer than what it answers is not sent") {
  CountingWaker waker;
  ControlSender sender(waker);
  for (size_t limit = 0; limit < 40; ++limit) CHECK_FALSE(sender.post_challenge(kPeer, {}, limit));
  CHECK_FALSE(sender.waiting());
  CHECK(waker.woken == 0);
  CHECK(sender.post_challenge(kPeer, {}, 40));
  CHECK(sender.waiting());
  CHECK(waker.woken == 1);
}

TEST_CASE("an Error that would be longer than what it answers is not sent") {
  CountingWaker waker;
  ControlSender sender(waker);
  for (size_t limit = 0; limit < 20; ++limit) CHECK_FALSE(sender.post_error(kPeer, kError, limit));
  CHECK_FALSE(sender.waiting());
  CHECK(sender.post_error(kPeer, kError, 20));
  CHECK(sender.waiting());
}

TEST_CASE("no more control messages wait than there are places, until they are forgotten") {
  CountingWaker waker;
  ControlSender sender(waker);
  for (size_t i = 0; i < ControlSender::kPlaces; ++i) {
    REQUIRE((i % 2 == 0 ? sender.post_challenge(kPeer, {}, 100)
                        : sender.post_error(kPeer, kError, 100)));
  }
  CHECK_FALSE(sender.post_challenge(kPeer, {}, 100));
  CHECK_FALSE(sender.post_error(kPeer, kError, 100));
  sender.reset();
  CHECK_FALSE(sender.waiting());
  CHECK(sender.post_challenge(kPeer, {}, 100));
}
