// SPDX-License-Identifier: Apache-2.0

#include "dgram/transmit_ring.h"

#include <utility>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;

TEST_CASE("transmit ring: slots in use stay what they are when it grows") {
  TransmitRing ring;
  const uint64_t first = (uint64_t{1} << 32) - 5;  // their places do not begin at 0
  REQUIRE(ring.reserve(first, first, 16, nullptr));
  CHECK(ring.capacity() == 16);
  for (uint64_t at = first; at != first + 16; ++at)
    ring.at(at) = {.tag = {.offset = static_cast<uint32_t>(at - first)}};
  REQUIRE(ring.reserve(first, first + 16, 17, nullptr));
  CHECK(ring.capacity() == 32);
  for (uint64_t at = first; at != first + 16; ++at) CHECK(ring.at(at).tag.offset == at - first);
}

TEST_CASE("transmit ring: memory beyond the first slots counts to the budget while it is there") {
  MemoryBudget budget(64 * sizeof(TxSlot));
  TransmitRing ring;
  REQUIRE(ring.reserve(1, 1, TransmitRing::kUncounted, &budget));
  CHECK(budget.used() == 0);
  REQUIRE(ring.reserve(1, 1, 33, &budget));
  CHECK(budget.used() == 64 * sizeof(TxSlot));
  SECTION("a ring that is moved takes its count along") {
    TransmitRing moved = std::move(ring);
    CHECK(budget.used() == 64 * sizeof(TxSlot));
    moved = TransmitRing();
  }
  SECTION("a ring that is emptied gives its count back") { ring = TransmitRing(); }
  CHECK(budget.used() == 0);
}

TEST_CASE("transmit ring: where memory is refused, it stays as it was") {
  MemoryBudget budget(0);
  TransmitRing ring;
  REQUIRE(ring.reserve(1, 1, 3, &budget));
  ring.at(2).tag.offset = 7;
  CHECK_FALSE(ring.reserve(1, 4, 17, &budget));
  CHECK(ring.capacity() == TransmitRing::kUncounted);
  CHECK(ring.at(2).tag.offset == 7);
  CHECK(budget.used() == 0);
}
