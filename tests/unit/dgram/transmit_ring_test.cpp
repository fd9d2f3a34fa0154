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
  constexpr size_t kSlots = 64 * sizeof(TxSlot) + sizeof(uint64_t);  // and a bit for each
  MemoryBudget budget(kSlots);
  TransmitRing ring;
  REQUIRE(ring.reserve(1, 1, TransmitRing::kUncounted, &budget));
  CHECK(budget.used() == 0);
  REQUIRE(ring.reserve(1, 1, 33, &budget));
  CHECK(budget.used() == kSlots);
  SECTION("a ring that is moved takes its count along") {
    TransmitRing moved = std::move(ring);
    CHECK(budget.used() == kSlots);
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

TEST_CASE(
    "transmit ring: which of 64 numbers came is read from any number on, and survives growth") {
  TransmitRing ring;
  REQUIRE(ring.reserve(1, 1, 16, nullptr));
  ring.at(5).flags = TxSlot::came;
  ring.set_came(5, true);
  CHECK(ring.came(5) == uint64_t{1} << 63);
  CHECK(ring.came(2) == uint64_t{1} << 60);
  REQUIRE(ring.reserve(1, 17, 200, nullptr));
  CHECK(ring.came(5) == uint64_t{1} << 63);
  ring.set_came(5, false);
  ring.set_came(255, true);
  ring.set_came(256, true);  // across the end of the ring
  CHECK(ring.came(255) == uint64_t{3} << 62);
  CHECK(ring.came(200) == uint64_t{3} << 7);
  ring.set_came(255, false);
  CHECK(ring.came(255) == uint64_t{1} << 62);
}
