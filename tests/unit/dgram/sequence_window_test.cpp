// SPDX-License-Identifier: Apache-2.0

#include "dgram/sequence_window.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;

TEST_CASE(
    "sequence window: the peer's window counts from what it acknowledges, and never shrinks") {
  SequenceWindow window(10, 2);
  CHECK(window.is_open(1));
  CHECK_FALSE(window.is_open(2));
  window.sent();
  window.sent();
  CHECK_FALSE(window.is_open());
  window.open(10, 4);  // up to 14
  CHECK(window.is_open(2));
  CHECK_FALSE(window.is_open(3));
  window.open(11, 0);
  CHECK(window.is_open(2));
}

TEST_CASE("sequence window: what the peer tells is known where it tells it once more, or less") {
  SequenceWindow window((uint64_t{1} << 32) + 1, 2);  // 0 of the wire is the one before the first
  CHECK(window.knows(0, 2));
  CHECK(window.knows(0, 0));
  CHECK_FALSE(window.knows(0, 3));
  CHECK_FALSE(window.knows(1, 0));
  CHECK_FALSE(window.knows(UINT32_MAX, 0));
  window.sent();
  CHECK_FALSE(window.knows(1, 0));
  window.open((uint64_t{1} << 32) + 1, 5);
  window.acknowledged();
  CHECK(window.knows(1, 5));
  CHECK_FALSE(window.knows(1, 6));
  CHECK_FALSE(window.knows(0, 0));
}

TEST_CASE("sequence window: a datagram is outstanding, then unreleased, then neither") {
  SequenceWindow window(10, 2);
  CHECK(window.idle());
  window.sent();
  window.sent();
  window.acknowledged();
  CHECK(window.first_unacknowledged() == 11);
  CHECK(window.outstanding() == 1);
  CHECK(window.unreleased() == 2);
  window.acknowledged();
  CHECK(window.idle());
  CHECK(window.unreleased() == 2);
  window.released();
  CHECK(window.first_unreleased() == 11);
  CHECK(window.unreleased() == 1);
}

TEST_CASE("sequence window: numbers of the wire are extended across a wrap of 32 bits") {
  const uint64_t first = (uint64_t{2} << 32) - 1;
  SequenceWindow window(first, 10);
  window.sent();
  window.sent();
  CHECK(window.extend(0xFFFFFFFE) == first - 1);
  CHECK(window.extend(0) == first + 1);
  CHECK(window.was_sent(0xFFFFFFFE));  // a probe names it
  CHECK(window.was_sent(0));
  CHECK_FALSE(window.was_sent(1));
  CHECK_FALSE(window.was_sent(0xFFFFFFFD));
}
