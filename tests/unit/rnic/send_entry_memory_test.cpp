// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/send_entry_memory.h"

#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

constexpr QueuePairCapacity capacity(uint32_t entries, uint32_t sges, uint32_t inline_bytes) {
  return {.max_send_wr = entries, .max_send_sge = sges, .max_inline_data = inline_bytes};
}

/// SGEs between the rooms of two slots that follow each other.
size_t room(const QueuePairCapacity& of) {
  SendEntryMemory memory(of);
  REQUIRE(memory.take());
  return static_cast<size_t>(memory.room_of(1) - memory.room_of(0));
}

}  // namespace

TEST_CASE("send entry memory: it has the next power of two of slots") {
  CHECK(SendEntryMemory(capacity(1, 1, 0)).depth() == 1);
  CHECK(SendEntryMemory(capacity(16, 1, 0)).depth() == 16);
  CHECK(SendEntryMemory(capacity(17, 1, 0)).depth() == 32);
}

TEST_CASE("send entry memory: a slot has room for its list, or for one SGE and inline data") {
  CHECK(room(capacity(4, 7, 0)) == 7);
  CHECK(room(capacity(4, 1, 0)) == 1);
  CHECK(room(capacity(4, 1, 1)) == 2);
  CHECK(room(capacity(4, 2, 3 * sizeof(Sge))) == 4);
  CHECK(room(capacity(4, 2, 3 * sizeof(Sge) + 1)) == 5);
  CHECK(room(capacity(4, 9, 3 * sizeof(Sge))) == 9);
}

TEST_CASE("send entry memory: an entry is found by its slot, and its slot by the entry") {
  SendEntryMemory memory(capacity(8, 2, 0));
  CHECK_FALSE(memory.is_taken());
  REQUIRE(memory.take());
  CHECK(memory.is_taken());
  for (uint32_t slot = 0; slot < memory.depth(); ++slot) {
    memory[slot].wr_id = slot;
    CHECK(memory.slot_of(memory[slot]) == slot);
  }
  for (uint32_t slot = 0; slot < memory.depth(); ++slot) CHECK(memory[slot].wr_id == slot);
}

TEST_CASE("send entry memory: where a part of it cannot be had, none is taken") {
  const QueuePairCapacity large = capacity(64, 64, 0);
  static_assert(sizeof(SendEntry) < 64 * sizeof(Sge), "so that the entries take less");
  SendEntryMemory memory(large);
  const size_t before = test::allocated_bytes();
  {
    const test::Starvation no_entries(1000);
    CHECK_FALSE(memory.take());
  }
  {
    const test::Starvation no_sges(64 * 64 * sizeof(Sge));
    CHECK_FALSE(memory.take());
  }
  CHECK_FALSE(memory.is_taken());
  CHECK(test::allocated_bytes() == before);
  CHECK(memory.take());
}
