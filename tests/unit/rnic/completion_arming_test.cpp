// SPDX-License-Identifier: Apache-2.0

#include "rnic/queues/completion_arming.h"
#include "support/catch.h"

using diwarp::rnic::CompletionArming;

TEST_CASE("completion arming: one event for each arming, at the next completion") {
  CompletionArming arming;
  CHECK_FALSE(arming.armed());
  CHECK_FALSE(arming.take(0, true));
  arming.arm(1, false);
  CHECK(arming.armed());
  CHECK(arming.take(1, false));
  CHECK_FALSE(arming.armed());
  CHECK_FALSE(arming.take(2, false));
}

TEST_CASE("completion arming: a completion pushed before it was armed does not use it up") {
  // The producer asks late: the consumer polled completion 0 without an event, and armed anew.
  CompletionArming arming;
  arming.arm(0, false);
  arming.arm(1, false);
  CHECK_FALSE(arming.take(0, false));
  CHECK(arming.take(1, false));
}

TEST_CASE("completion arming: armed for solicited ones, the others do not use it up") {
  CompletionArming arming;
  arming.arm(0, true);
  CHECK_FALSE(arming.take(0, false));
  CHECK(arming.armed());
  CHECK(arming.take(1, true));
}
