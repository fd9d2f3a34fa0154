// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/validity_pool.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;

namespace {

using Range = ValidityMap::Range;

/// Every second byte of the first 2 * `ranges`.
InsertResult scatter(ValidityBuilder& builder, size_t ranges, ValidityPool& pool) {
  InsertResult result = InsertResult::duplicate;
  for (size_t i = 0; i < ranges; ++i) result = builder.insert(2 * i, 2 * i + 1, pool);
  return result;
}

ValidityMap scattered(ValidityPool& pool, uint64_t length = 100) {
  ValidityBuilder builder;
  scatter(builder, 2, pool);
  return builder.take(length);
}

}  // namespace

TEST_CASE("a growing map of one range takes nothing from the pool, in any order of its bytes") {
  const auto pool = ValidityPool::create(0, 16);
  ValidityBuilder builder;
  CHECK(builder.insert(50, 60, *pool) == InsertResult::added);
  CHECK(builder.insert(60, 70, *pool) == InsertResult::added);
  CHECK(builder.insert(40, 50, *pool) == InsertResult::added);
  CHECK(builder.insert(45, 65, *pool) == InsertResult::duplicate);
  CHECK(builder.insert(30, 50, *pool) == InsertResult::partial);
  CHECK(builder.covered() == 40);
  CHECK(builder.insert(71, 72, *pool) == InsertResult::full);
  CHECK(builder.covered() == 40);
  const ValidityMap map = builder.take(100);
  CHECK(map.length() == 100);
  CHECK(*map.ranges().begin() == Range{30, 40});
  CHECK(map.range_count() == 1);
  CHECK(builder.covered() == 0);
}

TEST_CASE("the presence of some bytes: nothing, a part, or all") {
  const auto pool = ValidityPool::create(1, 16);
  ValidityBuilder builder;
  CHECK(builder.presence(0, 100) == Presence::none);
  const bool several = GENERATE(false, true);
  builder.insert(10, 20, *pool);
  if (several) builder.insert(30, 40, *pool);
  CHECK(builder.presence(0, 10) == Presence::none);
  CHECK(builder.presence(20, 30) == Presence::none);
  CHECK(builder.presence(40, 50) == Presence::none);
  CHECK(builder.presence(10, 20) == Presence::all);
  CHECK(builder.presence(12, 13) == Presence::all);
  CHECK(builder.presence(9, 11) == Presence::part);
  CHECK(builder.presence(19, 21) == Presence::part);
  CHECK(builder.presence(5, 50) == Presence::part);
  CHECK(builder.presence(15, 35) == Presence::part);
}

TEST_CASE("a pool lends as many maps of several ranges as it has, and lends again what came back") {
  const auto pool = ValidityPool::create(2, 16);
  ValidityBuilder third;
  third.insert(0, 1, *pool);
  {
    const ValidityMap one = scattered(*pool);
    ValidityMap two = scattered(*pool);
    CHECK(third.insert(2, 3, *pool) == InsertResult::full);
    const ValidityMap copy = two;
    two = ValidityMap();
    CHECK(third.insert(2, 3, *pool) == InsertResult::full);  // the copy has it still
    CHECK(copy.valid_bytes() == 2);
  }
  CHECK(third.insert(2, 3, *pool) == InsertResult::added);
  CHECK(third.covered() == 2);
  const ValidityMap again = scattered(*pool);
  CHECK(again.range_count() == 2);
}

TEST_CASE("overwriting a map gives its place back at once, by copy and by move") {
  const auto pool = ValidityPool::create(1, 16);
  const bool move = GENERATE(false, true);
  ValidityMap map = scattered(*pool);
  ValidityMap other(8, Range{0, 8});
  if (move)
    map = std::move(other);
  else
    map = other;
  CHECK(scattered(*pool).range_count() == 2);
}

TEST_CASE("a map has as many ranges as the pool allows, and then keeps what it has") {
  const auto pool = ValidityPool::create(1, 6);
  ValidityBuilder builder;
  CHECK(scatter(builder, 6, *pool) == InsertResult::added);
  CHECK(builder.insert(12, 13, *pool) == InsertResult::full);
  CHECK(builder.covered() == 6);
  CHECK(builder.presence(12, 13) == Presence::none);
  CHECK(builder.insert(1, 2, *pool) == InsertResult::added);  // closes a gap: one range less
  CHECK(builder.insert(12, 13, *pool) == InsertResult::added);
  CHECK(builder.take(100).range_count() == 6);
}

TEST_CASE("where maps have one range at most, a second one finds no place") {
  const auto pool = ValidityPool::create(4, 1);
  ValidityBuilder builder;
  builder.insert(0, 1, *pool);
  CHECK(builder.insert(2, 3, *pool) == InsertResult::full);
  CHECK(builder.covered() == 1);
  CHECK(builder.insert(1, 2, *pool) == InsertResult::added);
  CHECK(builder.take(3).range_count() == 1);
}

TEST_CASE("a map whose gaps were closed holds no place of the pool") {
  const auto pool = ValidityPool::create(1, 16);
  ValidityBuilder builder;
  builder.insert(0, 10, *pool);
  builder.insert(20, 30, *pool);
  builder.insert(10, 20, *pool);
  const ValidityMap map = builder.take(30);
  CHECK(map.complete());
  CHECK(map.range_count() == 1);
  CHECK(scattered(*pool).range_count() == 2);
}

TEST_CASE("a growing map can be copied without a place in the pool, and goes on growing") {
  const auto pool = ValidityPool::create(1, 16);
  ValidityBuilder builder;
  CHECK(builder.copy(40).valid_bytes() == 0);
  scatter(builder, 3, *pool);
  const ValidityMap copy = builder.copy(40);
  builder.insert(10, 20, *pool);
  CHECK(copy.length() == 40);
  CHECK(copy.range_count() == 3);
  CHECK(copy.valid_bytes() == 3);
  CHECK(builder.take(40).valid_bytes() == 13);
}

TEST_CASE("a growing map that is dropped gives its place back") {
  const auto pool = ValidityPool::create(1, 16);
  {
    ValidityBuilder builder;
    scatter(builder, 2, *pool);
  }
  CHECK(scattered(*pool).range_count() == 2);
}

TEST_CASE("maps outlive their pool's owner") {
  std::weak_ptr<ValidityPool> watched;
  {
    ValidityMap map;
    {
      const auto pool = ValidityPool::create(4, 16);
      watched = pool;
      map = scattered(*pool);
    }
    CHECK(map.valid_bytes() == 2);
    CHECK_FALSE(watched.expired());
  }
  CHECK(watched.expired());
}

TEST_CASE("maps allocate nothing once their pool is warm") {
  const auto pool = ValidityPool::create(4, 64);
  const auto use = [&] {
    ValidityBuilder builder;
    scatter(builder, 40, *pool);
    const ValidityMap map = builder.take(100);
    const ValidityMap copy = map;  // NOLINT: the copy is the point
    return copy.valid_bytes();
  };
  use();
  use();
  const size_t before = test::allocations();
  uint64_t sum = 0;
  for (int i = 0; i < 1000; ++i) sum += use();
  CHECK(test::allocations() == before);
  CHECK(sum == 40'000);
}
