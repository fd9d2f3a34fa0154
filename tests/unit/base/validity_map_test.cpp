// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/validity_pool.h"
#include "diwarp/error.h"
#include "diwarp/validity_map.h"
#include "support/catch.h"

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
  CHECK(map.contains(0, 0));
  CHECK_FALSE(map.contains(0, 1));
  CHECK_FALSE(map.contains(1, 0));
}

TEST_CASE("a map of a message of which nothing came has one gap") {
  const ValidityMap map(100, Range{});
  CHECK(map.valid_bytes() == 0);
  CHECK(map.missing_bytes() == 100);
  CHECK_FALSE(map.complete());
  CHECK(map.ranges().empty());
  CHECK(gaps_of(map) == Ranges{{0, 100}});
  CHECK(map.first_gap() == Range{0, 100});
  CHECK_FALSE(map.contains(0, 1));
}

TEST_CASE("a map of a whole message has one range and no gap") {
  const ValidityMap map(100, Range{0, 100});
  CHECK(map.complete());
  CHECK(map.missing_bytes() == 0);
  CHECK(ranges_of(map) == Ranges{{0, 100}});
  CHECK(gaps_of(map).empty());
  CHECK(map.first_gap() == Range{100, 0});
  CHECK(map.contains(0, 100));
  CHECK(map.contains(100, 0));
  CHECK_FALSE(map.contains(0, 101));
  CHECK_FALSE(map.contains(1, kHighest));
  CHECK_FALSE(map.contains(kHighest, 1));
}

TEST_CASE("a map of one range has gaps before and behind it") {
  const ValidityMap map(100, Range{10, 20});
  CHECK(map.valid_bytes() == 20);
  CHECK(gaps_of(map) == Ranges{{0, 10}, {30, 70}});
  CHECK(map.first_gap() == Range{0, 10});
  CHECK(map.contains(10, 20));
  CHECK_FALSE(map.contains(9, 2));
  CHECK_FALSE(map.contains(29, 2));
  CHECK(gaps_of(ValidityMap(100, Range{0, 30})) == Ranges{{30, 70}});
  CHECK(gaps_of(ValidityMap(100, {})) == Ranges{{0, 100}});
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
  CHECK(map.contains(20, 5));
  CHECK(map.contains(62, 38));
  CHECK_FALSE(map.contains(20, 10));
  CHECK_FALSE(map.contains(5, 10));
  CHECK(map.contains(12, 0));
  CHECK_FALSE(map.contains(101, 0));
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
  CHECK_FALSE(map.contains(0, 1));
}

namespace {

/// A message's bytes, one bit each, and a map that says the same.
struct Marked {
  Marked(uint64_t length, Random& random, uint64_t most_ranges) : bytes(length) {
    IntervalSet set(512);
    for (uint64_t i = random.below(most_ranges + 1); i != 0; --i) {
      const uint64_t begin = random.below(length);
      const uint64_t end = std::min(length, begin + 1 + random.below(12));
      set.insert(begin, end);
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(begin),
                bytes.begin() + static_cast<ptrdiff_t>(end), true);
    }
    map = make_validity_map(length, set);
  }
  std::vector<bool> bytes;
  ValidityMap map;
};

std::vector<bool> bytes_of(const ValidityMap& map) {
  std::vector<bool> bytes(map.length());
  for (auto [offset, length] : map.ranges())
    for (uint64_t at = offset; at < offset + length; ++at) bytes[at] = true;
  return bytes;
}

/// Every second byte of 2 * `ranges`, from the first on.
ValidityMap scattered(uint64_t ranges, uint64_t first, uint64_t length) {
  IntervalSet set(ranges);
  for (uint64_t i = 0; i < ranges; ++i) set.insert(first + 2 * i, first + 2 * i + 1);
  return make_validity_map(length, set);
}

template <class Call>
bool is_refused(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Errc::invalid_argument;
  }
  return false;
}

}  // namespace

TEST_CASE("merged and intersected maps have the bytes that a bitmap has") {
  Random random(5);
  for (int round = 0; round < 500; ++round) {
    const uint64_t length = 1 + random.below(300);
    const Marked a(length, random, 30);
    const Marked b(length, random, 30);
    ValidityMap both = a.map;
    REQUIRE(both.merge(b.map));
    ValidityMap common = a.map;
    REQUIRE(common.intersect(b.map));
    std::vector<bool> either(length);
    std::vector<bool> each(length);
    for (uint64_t at = 0; at < length; ++at) {
      either[at] = a.bytes[at] || b.bytes[at];
      each[at] = a.bytes[at] && b.bytes[at];
      REQUIRE(both.contains(at, 1) == either[at]);
      REQUIRE(common.contains(at, 1) == each[at]);
    }
    REQUIRE(bytes_of(both) == either);
    REQUIRE(bytes_of(common) == each);
    REQUIRE(both.valid_bytes() + common.valid_bytes() == a.map.valid_bytes() + b.map.valid_bytes());
    for (size_t i = 1; i < both.range_count(); ++i) {  // they never touch
      const auto ranges = ranges_of(both);
      REQUIRE(ranges[i - 1].offset + ranges[i - 1].length < ranges[i].offset);
    }
    REQUIRE(bytes_of(a.map) == a.bytes);  // copies share nothing that changes
  }
}

TEST_CASE("the map of a part is merged at the part's offset") {
  Random random(6);
  for (int round = 0; round < 300; ++round) {
    const uint64_t length = 2 + random.below(200);
    const uint64_t offset = random.below(length - 1);
    Marked whole(length, random, 20);
    const Marked part(1 + random.below(length - offset), random, 20);
    REQUIRE(whole.map.merge(part.map, offset));
    for (uint64_t at = 0; at < part.bytes.size(); ++at)
      if (part.bytes[at]) whole.bytes[offset + at] = true;
    REQUIRE(bytes_of(whole.map) == whole.bytes);
  }
}

TEST_CASE("holes that are fetched one by one leave a complete map that holds no memory") {
  ValidityMap map = map_of(100, {{0, 10}, {20, 10}, {50, 30}});
  while (!map.complete()) {
    const Range gap = map.first_gap();
    const uint64_t came = std::max<uint64_t>(1, gap.length / 2);  // a Read of which half was lost
    REQUIRE(map.merge(ValidityMap(gap.length, Range{0, came}), gap.offset));
  }
  CHECK(map.missing_bytes() == 0);
  CHECK(ranges_of(map) == Ranges{{0, 100}});
}

TEST_CASE("a map can be merged and intersected with itself, with none and with all") {
  ValidityMap map = map_of(100, {{0, 10}, {20, 10}});
  const ValidityMap before = map;
  CHECK(map.merge(map));
  CHECK(map.intersect(map));
  CHECK(map.merge(ValidityMap(100, Range{})));
  CHECK(map.intersect(ValidityMap(100, Range{0, 100})));
  CHECK(ranges_of(map) == ranges_of(before));
  CHECK(map.intersect(ValidityMap(100, Range{})));
  CHECK(map.valid_bytes() == 0);
  CHECK(map.length() == 100);
  CHECK(map.merge(ValidityMap(100, Range{0, 100})));
  CHECK(map.complete());
  ValidityMap nothing;
  CHECK(nothing.merge(ValidityMap()));
  CHECK(nothing.intersect(ValidityMap()));
  CHECK(nothing.complete());
}

TEST_CASE("maps of another message are refused, and change nothing") {
  ValidityMap map = map_of(100, {{0, 10}, {20, 10}});
  const ValidityMap part(50, Range{0, 50});
  CHECK(is_refused([&] { map.merge(part, 51); }));
  CHECK(is_refused([&] { map.merge(part, 101); }));
  CHECK(is_refused([&] { map.merge(part, kHighest); }));
  CHECK(is_refused([&] { map.intersect(part); }));
  CHECK(map.valid_bytes() == 20);
  CHECK(map.merge(part, 50));
  CHECK(map.valid_bytes() == 70);
}

TEST_CASE("where a result has more ranges than there is room for, no byte is claimed wrongly") {
  constexpr uint64_t kRanges = ValidityMap::kMaxRanges;
  constexpr uint64_t kLength = 4 * kRanges + 10;
  const ValidityMap low = scattered(kRanges, 0, kLength);
  const ValidityMap high = scattered(kRanges, 2 * kRanges, kLength);
  ValidityMap map = low;
  CHECK_FALSE(map.merge(high));
  CHECK(map.range_count() == kRanges);
  CHECK(ranges_of(map) == ranges_of(low));
  // A range that joins others needs no room.
  CHECK(map.merge(ValidityMap(kLength, Range{0, 2 * kRanges})));
  CHECK(map.range_count() == 1);
  CHECK(map.merge(high));
  CHECK(map.valid_bytes() == 3 * kRanges);

  const ValidityMap most = scattered(kRanges + 5, 0, kLength);
  ValidityMap common = most;
  CHECK_FALSE(common.intersect(ValidityMap(kLength, Range{0, kLength})));
  CHECK(common.range_count() == kRanges);
  CHECK(ranges_of(common) == ranges_of(low));
}

TEST_CASE("a merged map gives its place of the pool back") {
  const auto pool = ValidityPool::create(1, 8);
  ValidityBuilder builder;
  builder.insert(0, 1, *pool);
  builder.insert(2, 3, *pool);
  ValidityMap map = builder.take(10);
  CHECK(builder.insert(0, 1, *pool) == InsertResult::added);
  CHECK(builder.insert(4, 5, *pool) == InsertResult::full);
  CHECK(map.merge(ValidityMap(10, Range{6, 1})));
  CHECK(builder.insert(4, 5, *pool) == InsertResult::added);
  CHECK(ranges_of(map) == Ranges{{0, 1}, {2, 1}, {6, 1}});
}
