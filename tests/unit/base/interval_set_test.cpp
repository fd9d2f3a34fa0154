// SPDX-License-Identifier: Apache-2.0
#include "base/interval_set.h"

#include <bitset>
#include <vector>

#include "base/random.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using Range = IntervalSet::Range;
using Gap = std::pair<uint64_t, uint64_t>;

namespace Catch {
template <>
struct StringMaker<Range> {
  static std::string convert(const Range& range) {
    return std::to_string(range.begin) + ".." + std::to_string(range.end);
  }
};
}  // namespace Catch

namespace {

std::vector<Range> ranges(const IntervalSet& set) { return {set.begin(), set.end()}; }

/// The same set, one bit a byte.
struct Model {
  static constexpr uint64_t kSize = 200;
  std::bitset<kSize> bits;

  std::vector<Range> runs() const {
    std::vector<Range> result;
    for (uint64_t i = 0; i < kSize; ++i) {
      if (!bits[i]) continue;
      if (i == 0 || !bits[i - 1]) result.push_back({i, i});
      result.back().end = i + 1;
    }
    return result;
  }

  uint64_t count(uint64_t begin, uint64_t end) const {
    uint64_t found = 0;
    for (uint64_t i = begin; i < end; ++i) found += bits[i];
    return found;
  }

  InsertResult insert(uint64_t begin, uint64_t end, size_t max_ranges) {
    const uint64_t present = count(begin, end);
    if (present == end - begin) return InsertResult::duplicate;
    const std::bitset<kSize> before = bits;
    for (uint64_t i = begin; i < end; ++i) bits.set(i);
    if (runs().size() > max_ranges) {
      bits = before;
      return InsertResult::full;
    }
    return present == 0 ? InsertResult::added : InsertResult::partial;
  }

  Gap first_gap(uint64_t from, uint64_t limit) const {
    while (from < limit && bits[from]) ++from;
    uint64_t end = from;
    while (end < limit && !bits[end]) ++end;
    return {from, end};
  }
};

void compare(const IntervalSet& set, const Model& model, Random& random) {
  REQUIRE(ranges(set) == model.runs());
  REQUIRE(set.covered() == model.bits.count());
  const uint64_t a = random.below(Model::kSize + 1);
  const uint64_t b = a + random.below(Model::kSize + 1 - a);
  REQUIRE(set.contains(a, b) == (model.count(a, b) == b - a));
  REQUIRE(set.first_gap(a, b) == model.first_gap(a, b));
}

}  // namespace

TEST_CASE("ranges that touch or overlap become one") {
  IntervalSet set;
  CHECK(set.insert(10, 20) == InsertResult::added);
  CHECK(set.insert(30, 40) == InsertResult::added);
  CHECK(set.insert(20, 30) == InsertResult::added);
  CHECK(ranges(set) == std::vector<Range>{{10, 40}});
  CHECK(set.insert(5, 12) == InsertResult::partial);
  CHECK(set.insert(35, 50) == InsertResult::partial);
  CHECK(set.insert(5, 50) == InsertResult::duplicate);
  CHECK(set.insert(17, 17) == InsertResult::duplicate);
  CHECK(ranges(set) == std::vector<Range>{{5, 50}});
  CHECK(set.covered() == 45);
}

TEST_CASE("a full interval set claims nothing and still closes gaps") {
  IntervalSet set(2);
  CHECK(set.insert(0, 10) == InsertResult::added);
  CHECK(set.insert(20, 30) == InsertResult::added);
  CHECK(set.insert(40, 50) == InsertResult::full);
  CHECK(set.insert(12, 13) == InsertResult::full);
  CHECK(ranges(set) == std::vector<Range>{{0, 10}, {20, 30}});
  CHECK(set.covered() == 20);
  CHECK_FALSE(set.contains(40, 41));
  CHECK(set.insert(30, 35) == InsertResult::added);
  CHECK(set.insert(10, 20) == InsertResult::added);
  CHECK(set.insert(40, 50) == InsertResult::added);
  CHECK(ranges(set) == std::vector<Range>{{0, 35}, {40, 50}});
}

TEST_CASE("an interval set without room for any range is always full") {
  IntervalSet set(0);
  CHECK(set.insert(0, 1) == InsertResult::full);
  CHECK(set.empty());
}

TEST_CASE("gaps are found before, between and behind the ranges") {
  IntervalSet set;
  CHECK(set.first_gap(0, 100) == Gap{0, 100});
  set.insert(10, 20);
  set.insert(30, 40);
  CHECK(set.first_gap(0, 100) == Gap{0, 10});
  CHECK(set.first_gap(10, 100) == Gap{20, 30});
  CHECK(set.first_gap(25, 28) == Gap{25, 28});
  CHECK(set.first_gap(30, 100) == Gap{40, 100});
  CHECK(set.first_gap(30, 40) == Gap{40, 40});
  CHECK(set.first_gap(32, 35) == Gap{35, 35});
}

TEST_CASE("ranges at the end of the number space do not wrap") {
  constexpr uint64_t kEnd = UINT64_MAX;
  IntervalSet set;
  CHECK(set.insert(kEnd - 1, kEnd) == InsertResult::added);
  CHECK(set.insert(0, 1) == InsertResult::added);
  CHECK(set.size() == 2);
  CHECK(set.insert(0, kEnd) == InsertResult::partial);
  CHECK(set.covered() == kEnd);
  CHECK(set.contains(0, kEnd));
}

TEST_CASE("a message that comes in order, or nearly so, needs no heap") {
  IntervalSet set(1000);
  const size_t before = test::allocations();
  for (uint64_t i = 0; i < 10000; i += 2) {
    set.insert(10 * (i + 1), 10 * (i + 2));
    set.insert(10 * i, 10 * (i + 1));
  }
  CHECK(test::allocations() == before);
  CHECK(ranges(set) == std::vector<Range>{{0, 100000}});
}

TEST_CASE("memory for ranges doubles and is kept by clear") {
  IntervalSet set(64);
  const auto scatter = [&] {
    const size_t before = test::allocations();
    for (uint64_t i = 0; i < 64; ++i) CHECK(set.insert(10 * i, 10 * i + 1) == InsertResult::added);
    const size_t after = test::allocations();
    return after - before;
  };
  const size_t first = scatter();
  CHECK(first >= 1);
  set.clear();
  CHECK(set.empty());
  CHECK(set.covered() == 0);
  CHECK(scatter() + 4 <= first);
}

TEST_CASE("a moved interval set takes its ranges along and leaves none") {
  for (uint64_t count : {3u, 30u}) {
    IntervalSet from(64);
    for (uint64_t i = 0; i < count; ++i) from.insert(10 * i, 10 * i + 1);
    const auto expected = ranges(from);
    IntervalSet by_construction(std::move(from));
    CHECK(ranges(by_construction) == expected);
    CHECK(from.empty());
    CHECK(from.covered() == 0);
    IntervalSet by_assignment(1);
    by_assignment = std::move(by_construction);
    CHECK(ranges(by_assignment) == expected);
    CHECK(by_assignment.covered() == count);
    CHECK(by_construction.insert(1, 2) == InsertResult::added);
    CHECK(ranges(by_construction) == std::vector<Range>{{1, 2}});
  }
}

TEST_CASE("an interval set behaves as a bitmap under random insertions") {
  const size_t max_ranges = GENERATE(1u, 2u, 4u, 5u, 8u, 100u);
  const uint64_t longest = GENERATE(3u, 20u);
  Random random(max_ranges * 100 + longest);
  for (int run = 0; run < 20; ++run) {
    IntervalSet set(max_ranges);
    Model model;
    for (int step = 0; step < 100; ++step) {
      const uint64_t begin = random.below(Model::kSize);
      const uint64_t end = std::min(Model::kSize, begin + random.below(longest + 1));
      REQUIRE(set.insert(begin, end) == model.insert(begin, end, max_ranges));
      compare(set, model, random);
    }
  }
}
