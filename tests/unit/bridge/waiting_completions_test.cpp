// SPDX-License-Identifier: Apache-2.0

#include "bridge/waiting_completions.h"

#include <array>
#include <vector>

#include "../base/allocations.h"
#include "bridge/work_table.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::bridge;
using diwarp::test::allocations;

namespace {

/// Notes whose places were released.
class Table final : public WorkTable {
 public:
  void complete(const ibv_wc&, uint32_t, CompletionSink&) override {}
  void release(uint32_t slot) override { released.push_back(slot); }
  std::vector<uint32_t> outstanding() const override { return {}; }

  std::vector<uint32_t> released;
};

void add(WaitingCompletions& waiting, Table& table, uint32_t slot) {
  waiting.add(table, slot).wr_id = slot;
}

std::vector<uint64_t> take(WaitingCompletions& waiting, size_t most) {
  std::vector<WorkCompletion> taken(most);
  taken.resize(waiting.take(taken));
  std::vector<uint64_t> wr_ids;
  for (const WorkCompletion& one : taken) wr_ids.push_back(one.wr_id);
  return wr_ids;
}

using WrIds = std::vector<uint64_t>;
using Slots = std::vector<uint32_t>;

}  // namespace

TEST_CASE("waiting completions: in order, and each releases its place when it is taken") {
  WaitingCompletions waiting;
  Table table;
  waiting.reserve(4);
  for (uint32_t slot = 0; slot < 4; ++slot) add(waiting, table, slot);
  CHECK(take(waiting, 3) == WrIds{0, 1, 2});
  CHECK(table.released == Slots{0, 1, 2});
  CHECK_FALSE(waiting.empty());
  CHECK(take(waiting, 3) == WrIds{3});
  CHECK(waiting.empty());
}

TEST_CASE("waiting completions: no memory is taken within what was reserved") {
  WaitingCompletions waiting;
  Table table;
  table.released.reserve(1000);
  waiting.reserve(8);
  std::array<WorkCompletion, 3> taken;
  const size_t before = allocations();
  uint32_t slot = 0;
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < 3; ++k) add(waiting, table, slot++);
    if (i % 2 == 0) add(waiting, table, slot++);
    while (waiting.take(taken) == taken.size()) {
    }
  }
  for (int k = 0; k < 8; ++k) add(waiting, table, slot++);
  CHECK(allocations() == before);
}

TEST_CASE("waiting completions: those of a table that goes stay without their places, the newest") {
  WaitingCompletions waiting;
  Table gone;
  Table other;
  waiting.reserve(8);
  for (uint32_t slot = 0; slot < 3; ++slot) add(waiting, gone, slot);
  add(waiting, other, 10);
  waiting.forget(gone, true, 2);
  CHECK(gone.released == Slots{0, 1, 2});
  waiting.reserve(5);  // besides those two
  const size_t before = allocations();
  for (uint32_t slot = 11; slot < 15; ++slot) add(waiting, other, slot);
  CHECK(allocations() == before);
  CHECK(take(waiting, 10) == WrIds{1, 2, 10, 11, 12, 13, 14});
  CHECK(other.released == Slots{10, 11, 12, 13, 14});
}

TEST_CASE("waiting completions: those of a table whose queue pair is reset are dropped") {
  WaitingCompletions waiting;
  Table gone;
  Table other;
  waiting.reserve(4);
  add(waiting, gone, 0);
  add(waiting, other, 1);
  waiting.forget(gone, false, 100);
  CHECK(take(waiting, 10) == WrIds{1});
}
