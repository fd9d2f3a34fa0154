// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/validity_pool.h"
#include "diwarp/validity_map.h"

using namespace diwarp;

namespace {

using Range = ValidityMap::Range;
using Ranges = std::vector<Range>;

constexpr uint64_t kHighest = std::numeric_limits<uint64_t>::max();

ValidityMap map_of(uint64_t length, const Ranges& ranges) {
  IntervalSet set;
  for (const Range& range : ranges) set.insert(range.offset, range.offset + range.length);
  return make_validity_map(length, set);
}

Ranges ranges_of(const ValidityMap& map) { return {map.ranges().begin(), map.ranges().end()}; }

Ranges gaps_of(const ValidityMap& map) {
  Ranges all;
  for (auto [offset, length] : map.gaps()) all.push_back({offset, length});
  return all;
}

}  // namespace

TEST_CASE("a map of a message of no bytes is complete and has neither ranges nor gaps") {
  const ValidityMap map;
  CHECK(map.length() == 0);
  CHECK(map.valid_bytes() == 0);
  CHECK(map.missing_bytes() == 0);
  CHECK(map.complete());
  CHECK(map.ranges().empty());
  CHECK(map.range_count() == 0);
  CHECK(map.gaps().empty());
  CHECK(map.first_gap() == Range{0, 0});
  CHECK(map.covers(0, 0));
  CHECK_FALSE(map.covers(0, 1));
  CHECK_FALSE(map.covers(1, 0));
}

TEST_CASE("a map of a message of which nothing came has one gap") {
  const ValidityMap map(100, Range{});
  CHECK(map.valid_bytes() == 0);
  CHECK(map.missing_bytes() == 100);
  CHECK_FALSE(map.complete());
  CHECK(map.ranges().empty());
  CHECK(gaps_of(map) == Ranges{{0, 100}});
  CHECK(map.first_gap() == Range{0, 100});
  CHECK_FALSE(map.covers(0, 1));
}

TEST_CASE("a map of a whole message has one range and no gap") {
  const ValidityMap map(100, Range{0, 100});
  CHECK(map.complete());
  CHECK(map.missing_bytes() == 0);
  CHECK(ranges_of(map) == Ranges{{0, 100}});
  CHECK(gaps_of(map).empty());
  CHECK(map.first_gap() == Range{100, 0});
  CHECK(map.covers(0, 100));
  CHECK(map.covers(100, 0));
  CHECK_FALSE(map.covers(0, 101));
  CHECK_FALSE(map.covers(1, kHighest));
  CHECK_FALSE(map.covers(kHighest, 1));
}

TEST_CASE("a map of one range has gaps before and behind it") {
  const ValidityMap map(100, Range{10, 20});
  CHECK(map.valid_bytes() == 20);
  CHECK(gaps_of(map) == Ranges{{0, 10}, {30, 70}});
  CHECK(map.first_gap() == Range{0, 10});
  CHECK(map.covers(10, 20));
  CHECK_FALSE(map.covers(9, 2));
  CHECK_FALSE(map.covers(29, 2));
  CHECK(gaps_of(ValidityMap(100, Range{0, 30})) == Ranges{{30, 70}});
  CHECK(gaps_of(ValidityMap(100, Range{30, 70})) == Ranges{{0, 30}});
}

TEST_CASE("a map of several ranges tells them and the gaps between in order") {
  const ValidityMap map = map_of(100, {{60, 40}, {0, 10}, {20, 5}, {26, 4}});
  CHECK(ranges_of(map) == Ranges{{0, 10}, {20, 5}, {26, 4}, {60, 40}});
  CHECK(map.ranges().size() == 4);
  CHECK(gaps_of(map) == Ranges{{10, 10}, {25, 1}, {30, 30}});
  CHECK(map.valid_bytes() == 59);
  CHECK(map.missing_bytes() == 41);
  CHECK(map.first_gap() == Range{10, 10});
  CHECK(map.covers(20, 5));
  CHECK(map.covers(62, 38));
  CHECK_FALSE(map.covers(20, 10));
  CHECK_FALSE(map.covers(5, 10));
  CHECK(map.covers(12, 0));
  CHECK_FALSE(map.covers(101, 0));
}

TEST_CASE("ranges and gaps of any message together are the message") {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const uint64_t length = 1 + random.below(200);
    std::vector<bool> bytes(length);
    IntervalSet set(256);
    for (uint64_t i = random.below(20); i != 0; --i) {
      const uint64_t begin = random.below(length);
      const uint64_t end = begin + 1 + random.below(length - begin);
      set.insert(begin, end);
      for (uint64_t at = begin; at < end; ++at) bytes[at] = true;
    }
    const ValidityMap map = make_validity_map(length, set);
    std::vector<int> told(length);
    for (auto [offset, size] : map.ranges())
      for (uint64_t at = offset; at < offset + size; ++at) told[at] += 1;
    for (auto [offset, size] : map.gaps()) {
      CHECK(size != 0);
      for (uint64_t at = offset; at < offset + size; ++at) told[at] += 10;
    }
    for (uint64_t at = 0; at < length; ++at) REQUIRE(told[at] == (bytes[at] ? 1 : 10));
    CHECK(map.complete() == map.gaps().empty());
  }
}

TEST_CASE("a copy of a map outlives the original and says the same") {
  ValidityMap copy;
  {
    const ValidityMap map = map_of(100, {{0, 10}, {20, 5}});
    copy = map;
    const ValidityMap second(map);
    CHECK(ranges_of(second) == ranges_of(map));
  }
  CHECK(ranges_of(copy) == Ranges{{0, 10}, {20, 5}});
  CHECK(copy.length() == 100);
  copy = *&copy;
  CHECK(ranges_of(copy) == Ranges{{0, 10}, {20, 5}});
}

TEST_CASE("a map that was moved from claims nothing") {
  ValidityMap map = map_of(100, {{0, 10}, {20, 5}});
  const ValidityMap taken = std::move(map);
  CHECK(taken.valid_bytes() == 15);
  CHECK(map.valid_bytes() == 0);
  CHECK_FALSE(map.covers(0, 1));
}
