// SPDX-License-Identifier: Apache-2.0
#include "ddp/record.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

using Range = ValidityMap::Range;

/// A record of `length` bytes, and what its honest segments say.
struct Scene {
  explicit Scene(uint32_t length, size_t maps = 4, size_t ranges = 64)
      : info{.stag = 0x1234, .base = 1000, .length = length},
        pool(ValidityPool::create(maps, ranges)) {
    record.open(info);
  }
  SegmentFault add(uint32_t offset, uint32_t length) {
    return record.add(offset, length, offset + length == info.length, *pool);
  }
  RecordInfo info;
  std::shared_ptr<ValidityPool> pool;
  Record record;
};

std::vector<Range> ranges_of(const ValidityMap& map) {
  return {map.ranges().begin(), map.ranges().end()};
}

}  // namespace

TEST_CASE("a record of no bytes is complete with its one segment") {
  Scene scene(0);
  CHECK_FALSE(scene.record.ended());
  CHECK(scene.add(0, 0) == SegmentFault::none);
  CHECK(scene.record.complete());
  CHECK(scene.record.ended());
  const ValidityMap map = scene.record.take_map();
  CHECK(map.complete());
  CHECK(map.length() == 0);
}

TEST_CASE("a record of one segment is complete with it") {
  Scene scene(10);
  CHECK_FALSE(scene.record.complete());
  CHECK(scene.add(0, 10) == SegmentFault::none);
  CHECK(scene.record.complete());
  CHECK(scene.record.valid_bytes() == 10);
  CHECK(ranges_of(scene.record.take_map()) == std::vector{Range{0, 10}});
}

TEST_CASE("a record is complete when its segments are there, in whatever order they came") {
  std::vector<uint32_t> order{0, 10, 20, 30, 40};
  do {
    Scene scene(45);
    for (size_t i = 0; i < order.size(); ++i) {
      CHECK_FALSE(scene.record.complete());
      REQUIRE(scene.add(order[i], order[i] == 40 ? 5 : 10) == SegmentFault::none);
      const auto until = order.begin() + static_cast<ptrdiff_t>(i) + 1;
      CHECK(scene.record.ended() == (std::find(order.begin(), until, 40U) != until));
    }
    CHECK(scene.record.complete());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a segment that says anything else of the message contradicts its record") {
  Scene scene(30);
  scene.info.has_immediate = true;
  scene.info.immediate = 5;
  scene.record.open(scene.info);
  CHECK_FALSE(scene.record.contradicts(scene.info));
  RecordInfo other = scene.info;
  SECTION("another STag") { other.stag = 0x1235; }
  SECTION("another base") { other.base = 1001; }
  SECTION("another length") { other.length = 31; }
  SECTION("solicited") { other.solicited = true; }
  SECTION("no immediate") { other.has_immediate = false; }
  SECTION("another immediate") { other.immediate = 6; }
  CHECK(scene.record.contradicts(other));
}

TEST_CASE("bytes that are there already are a duplicate, a part of them a contradiction") {
  Scene scene(100);
  REQUIRE(scene.add(20, 20) == SegmentFault::none);
  REQUIRE(scene.add(60, 20) == SegmentFault::none);
  CHECK(scene.add(20, 20) == SegmentFault::duplicate);
  CHECK(scene.add(25, 5) == SegmentFault::duplicate);
  CHECK(scene.add(60, 20) == SegmentFault::duplicate);
  CHECK(scene.add(10, 11) == SegmentFault::contradiction);
  CHECK(scene.add(39, 2) == SegmentFault::contradiction);
  CHECK(scene.add(0, 100) == SegmentFault::contradiction);
  CHECK(scene.add(79, 21) == SegmentFault::contradiction);
  CHECK(scene.record.valid_bytes() == 40);
  CHECK_FALSE(scene.record.ended());
  CHECK(scene.add(40, 20) == SegmentFault::none);
  CHECK(ranges_of(scene.record.take_map()) == std::vector{Range{20, 60}});
}

TEST_CASE("an empty segment may end a record once, and else tells nothing") {
  Scene scene(20);
  CHECK(scene.add(0, 0) == SegmentFault::duplicate);
  CHECK(scene.add(5, 0) == SegmentFault::duplicate);
  CHECK(scene.add(20, 0) == SegmentFault::none);
  CHECK(scene.record.ended());
  CHECK_FALSE(scene.record.complete());
  CHECK(scene.record.valid_bytes() == 0);
  CHECK(scene.add(20, 0) == SegmentFault::duplicate);
}

TEST_CASE("a record without a map left takes what lies beside its range, and nothing else") {
  Scene scene(100, 0);
  REQUIRE(scene.add(20, 20) == SegmentFault::none);
  CHECK(scene.add(50, 10) == SegmentFault::range_limit);
  CHECK(scene.add(0, 10) == SegmentFault::range_limit);
  CHECK(scene.add(90, 10) == SegmentFault::range_limit);
  CHECK_FALSE(scene.record.ended());
  CHECK(scene.add(40, 10) == SegmentFault::none);
  CHECK(scene.add(10, 10) == SegmentFault::none);
  CHECK(ranges_of(scene.record.take_map()) == std::vector{Range{10, 40}});
}

TEST_CASE("a record with a full map claims no byte of a segment that did not fit in") {
  Scene scene(100, 1, 3);
  for (uint32_t offset : {0U, 20U, 40U}) REQUIRE(scene.add(offset, 10) == SegmentFault::none);
  CHECK(scene.add(60, 10) == SegmentFault::range_limit);
  CHECK(scene.add(99, 1) == SegmentFault::range_limit);
  CHECK(scene.add(10, 10) == SegmentFault::none);
  CHECK(scene.add(60, 10) == SegmentFault::none);
  const ValidityMap map = scene.record.take_map();
  CHECK(ranges_of(map) == std::vector{Range{0, 30}, Range{40, 10}, Range{60, 10}});
  CHECK_FALSE(map.contains(99, 1));
}

TEST_CASE("a record of 1 GiB is counted to its last byte") {
  constexpr uint32_t kLength = 1U << 30;
  Scene scene(kLength);
  CHECK(scene.add(kLength - 1, 1) == SegmentFault::none);
  CHECK(scene.record.ended());
  CHECK(scene.add(0, 65'000) == SegmentFault::none);
  CHECK(scene.add(65'000, kLength - 65'001) == SegmentFault::none);
  CHECK(scene.record.complete());
  CHECK(scene.record.take_map().valid_bytes() == kLength);
}

TEST_CASE("a record opened anew knows nothing of the one before") {
  Scene scene(30);
  REQUIRE(scene.add(0, 10) == SegmentFault::none);
  REQUIRE(scene.add(20, 10) == SegmentFault::none);
  scene.info.length = 40;
  scene.record.open(scene.info);
  CHECK(scene.record.valid_bytes() == 0);
  CHECK_FALSE(scene.record.ended());
  CHECK(scene.add(0, 10) == SegmentFault::none);
}

TEST_CASE("whatever segments come, a record claims exactly the bytes of those that it took") {
  Random random(21);
  for (int round = 0; round < 500; ++round) {
    const auto length = static_cast<uint32_t>(1 + random.below(300));
    Scene scene(length, random.below(2), 1 + random.below(8));
    std::vector<bool> taken(length);
    for (int i = 0; i < 40; ++i) {
      const auto offset = static_cast<uint32_t>(random.below(length));
      const auto size = static_cast<uint32_t>(random.below(length - offset + 1));
      const auto begin = taken.begin() + offset;
      const auto there = std::count(begin, begin + size, true);
      const SegmentFault fault = scene.add(offset, size);
      if (fault == SegmentFault::none) {
        REQUIRE(there == 0);
        std::fill(begin, begin + size, true);
      } else if (fault == SegmentFault::contradiction) {
        REQUIRE((there > 0 && there < size));
      } else if (fault == SegmentFault::duplicate) {
        REQUIRE(there == size);
      } else {
        REQUIRE(fault == SegmentFault::range_limit);
      }
    }
    const ValidityMap map = scene.record.take_map();
    for (uint32_t at = 0; at < length; ++at) REQUIRE(map.contains(at, 1) == taken[at]);
  }
}

TEST_CASE("a record whose segments come in order allocates nothing") {
  Scene scene(1'000'000);
  const size_t before = test::allocations();
  for (int i = 0; i < 3; ++i) {
    scene.record.open(scene.info);
    for (uint32_t offset = 0; offset < 1'000'000; offset += 1000) scene.add(offset, 1000);
    const ValidityMap map = scene.record.take_map();
    if (!map.complete()) break;
  }
  CHECK(test::allocations() == before);
  CHECK(scene.record.info().length == 1'000'000);
}
