// SPDX-License-Identifier: Apache-2.0
#include "ddp/stag_table.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "diwarp/error.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

/// Gives these numbers, then counts on from the last.
STagTable::RandomSource sequence(std::vector<uint32_t> values) {
  return [values = std::move(values), next = size_t{0}]() mutable {
    if (next < values.size()) return values[next++];
    return values.back() + static_cast<uint32_t>(++next - values.size());
  };
}

STagTable::RandomSource seeded(uint64_t seed) {
  return [random = Random(seed)]() mutable { return static_cast<uint32_t>(random.next()); };
}

void no_readers() {}

}  // namespace

TEST_CASE("a region is found under its STag until it is erased") {
  STagTable table(no_readers, seeded(1));
  const STag stag = table.insert({.protection_domain = 3, .base = 100, .length = 50});
  CHECK(table.size() == 1);
  const Region* region = table.find(stag);
  REQUIRE(region != nullptr);
  CHECK(region->stag == stag);
  CHECK(region->protection_domain == 3);
  CHECK(region->base == 100);
  CHECK(region->length == 50);
  CHECK(table.find(stag ^ 1) == nullptr);
  CHECK(table.find(stag ^ 0x100) == nullptr);

  CHECK(table.erase(stag));
  CHECK(table.find(stag) == nullptr);
  CHECK_FALSE(table.erase(stag));
  CHECK(table.size() == 0);
}

TEST_CASE("index 0 is never given and never found") {
  STagTable table(no_readers, sequence({0, 0xFF, 1, 0x2A07}));
  CHECK(table.find(0) == nullptr);
  CHECK_FALSE(table.erase(0));
  CHECK(table.insert({.stag = 0x700}) == 0x2A07);
  CHECK(table.find(0) == nullptr);
  CHECK(table.find(7) == nullptr);
  CHECK(table.find(0x700) == nullptr);
  CHECK(table.erase(0x2A07));
  CHECK(table.find(0) == nullptr);
  CHECK_FALSE(table.erase(0));
  CHECK_FALSE(table.erase(7));
}

TEST_CASE("an index in use is not given again, whatever the key") {
  STagTable table(no_readers, sequence({0x901, 0x901, 0x902, 0xA01, 0x9FF, 0xA00, 0xB01, 0x903}));
  CHECK(table.insert({}) == 0x901);
  CHECK(table.insert({}) == 0xA01);
  CHECK(table.insert({}) == 0xB01);
  CHECK(table.erase(0x901));
  CHECK(table.insert({}) == 0x903);
}

TEST_CASE("a region has the STag that was chosen for it, if its index is not 0 or in use") {
  STagTable table(no_readers, sequence({0x901, 0xA01}));
  CHECK(table.insert({}) == 0x901);
  CHECK(table.insert_chosen({.stag = 0xA07, .length = 5}));
  REQUIRE(table.find(0xA07) != nullptr);
  CHECK(table.find(0xA07)->stag == 0xA07);
  CHECK(table.find(0xA07)->length == 5);
  CHECK(table.find(0xA01) == nullptr);
  CHECK_FALSE(table.insert_chosen({.stag = 0xA07}));
  CHECK_FALSE(table.insert_chosen({.stag = 0xA08}));
  CHECK_FALSE(table.insert_chosen({.stag = 0x9FF}));
  CHECK_FALSE(table.insert_chosen({.stag = 0xFF}));
  CHECK_FALSE(table.insert_chosen({.stag = 0}));
  CHECK(table.size() == 2);
  CHECK(table.find(0xA07)->length == 5);
  CHECK(table.find(0x901) != nullptr);
  // An STag drawn afterwards is another one.
  CHECK(stag_index(table.insert({})) != 0xA);

  CHECK(table.erase(0xA07));
  CHECK(table.insert_chosen({.stag = 0xA08}));
  CHECK(table.find(0xA07) == nullptr);
  CHECK(table.find(0xA08) != nullptr);
}

TEST_CASE("a full table takes no chosen STag either") {
  STagTable table(no_readers, seeded(4), 2);
  CHECK(table.insert_chosen({.stag = 0x100}));
  CHECK(table.insert_chosen({.stag = 0x200}));
  CHECK_THROWS_AS(table.insert_chosen({.stag = 0x300}), Error);
}

TEST_CASE("STags that follow each other, or agree in many bits, are all found") {
  STagTable table(no_readers, seeded(5));
  const STag step = GENERATE(STag{0x100}, STag{0x10000}, STag{0x1000000});
  const STag count = std::min<STag>(2000, 0xFFFFFF00 / step);
  for (STag i = 1; i <= count; ++i) REQUIRE(table.insert_chosen({.stag = i * step, .length = i}));
  for (STag i = 1; i <= count; ++i) {
    REQUIRE(table.find(i * step) != nullptr);
    REQUIRE(table.find(i * step)->length == i);
  }
  CHECK(table.size() == count);
}

TEST_CASE("a stale key finds nothing, but the entry can be erased by any key") {
  STagTable table(no_readers, sequence({0x901}));
  CHECK(table.insert({}) == 0x901);
  for (STag key = 0; key < 256; ++key) CHECK((table.find(0x900 | key) != nullptr) == (key == 1));
  CHECK(table.erase(0x955));
  CHECK(table.find(0x901) == nullptr);
}

TEST_CASE("a full table refuses entries until one is erased") {
  STagTable table(no_readers, seeded(4), 3);
  const STag first = table.insert({});
  table.insert({});
  table.insert({});
  CHECK_THROWS_AS(table.insert({}), Error);
  CHECK(table.size() == 3);
  CHECK(table.erase(first));
  CHECK(table.find(table.insert({})) != nullptr);
}

TEST_CASE("STags that fall into the same slot are told apart") {
  // Every index ends in the same bits, whatever the size of the table.
  std::vector<uint32_t> values;
  for (uint32_t i = 1; i <= 40; ++i) values.push_back(i << 20 | 0x3F00);
  STagTable table(no_readers, sequence(values));
  for (uint32_t i = 0; i < 40; ++i) CHECK(table.insert({.base = i}) == values[i]);
  for (uint32_t i = 0; i < 40; i += 2) CHECK(table.erase(values[i]));
  for (uint32_t i = 0; i < 40; ++i) {
    const Region* region = table.find(values[i]);
    CHECK((region != nullptr) == (i % 2 == 1));
    if (region != nullptr) CHECK(region->base == i);
  }
  CHECK(table.size() == 20);
}

TEST_CASE("a table under random inserts and erasures equals a map") {
  Random random(77);
  STagTable table(no_readers, [&] { return static_cast<uint32_t>(random.below(3000)) << 8; });
  std::map<STag, uint64_t> model;
  for (uint64_t step = 0; step < 20000; ++step) {
    // Grows to a thousand, shrinks to a few, grows again.
    const bool growing = step / 4000 % 2 == 0;
    if (model.size() < 1000 && random.chance(growing ? 0.7 : 0.2)) {
      const STag stag = table.insert({.base = step});
      REQUIRE(stag != 0);
      REQUIRE(model.emplace(stag, step).second);
    } else {
      const auto stag = static_cast<STag>(random.below(3000)) << 8;
      REQUIRE(table.erase(stag) == (model.erase(stag) != 0));
    }
    const auto asked = static_cast<STag>(random.below(3000)) << 8;
    const Region* region = table.find(asked);
    const auto known = model.find(asked);
    REQUIRE((region != nullptr) == (known != model.end()));
    if (region != nullptr) REQUIRE(region->base == known->second);
    REQUIRE(table.size() == model.size());
  }
}

TEST_CASE("a region is unpublished before quiescence and freed only after it") {
  STagTable* table_seen = nullptr;
  const Region* held = nullptr;
  STag stag = 0;
  int quiesced = 0;
  const auto quiesce = [&] {
    ++quiesced;
    CHECK(table_seen->find(stag) == nullptr);
    CHECK(held->base == 12345);      // still there for readers that hold it
    CHECK(table_seen->size() == 0);  // writers are not locked out meanwhile
  };
  STagTable table(quiesce, seeded(5));
  table_seen = &table;
  stag = table.insert({.base = 12345});
  held = table.find(stag);
  CHECK(quiesced == 0);
  CHECK(table.erase(stag));
  CHECK(quiesced == 1);
  CHECK_FALSE(table.erase(stag));
  CHECK(quiesced == 1);
}

TEST_CASE("growth quiesces rarely and keeps every region in place") {
  int quiesced = 0;
  STagTable table([&] { ++quiesced; }, seeded(6));
  std::vector<std::pair<STag, const Region*>> all;
  for (uint64_t i = 0; i < 5000; ++i) {
    const STag stag = table.insert({.base = i});
    all.emplace_back(stag, table.find(stag));
  }
  CHECK(quiesced >= 1);
  CHECK(quiesced < 20);
  for (uint64_t i = 0; i < all.size(); ++i) {
    REQUIRE(table.find(all[i].first) == all[i].second);
    REQUIRE(all[i].second->base == i);
  }
}

TEST_CASE("registering and deregistering for ever does not fill the table") {
  STagTable table(no_readers, seeded(8));
  const STag kept = table.insert({.base = 1});
  for (int round = 0; round < 100000; ++round) {
    const STag stag = table.insert({});
    if (!table.erase(stag)) FAIL(round);
  }
  CHECK(table.size() == 1);
  CHECK(table.find(kept)->base == 1);
  CHECK(table.find(kept + 1) == nullptr);  // ends
}

TEST_CASE("finding allocates nothing") {
  STagTable table(no_readers, seeded(9));
  const STag stag = table.insert({});
  const size_t before = test::allocations();
  const bool found = table.find(stag) != nullptr && table.find(stag ^ 1) == nullptr;
  CHECK(test::allocations() == before);
  CHECK(found);
}
