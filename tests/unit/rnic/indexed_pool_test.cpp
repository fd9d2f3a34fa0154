// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/indexed_pool.h"

#include <set>
#include <vector>

#include "support/catch.h"

using namespace diwarp::rnic;

namespace {

struct Counted {
  Counted() { ++alive; }
  Counted(const Counted& other) : next(other.next), index(other.index) { ++alive; }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --alive; }

  static inline size_t alive = 0;
  Counted* next = nullptr;
  uint32_t index = 0;
};

}  // namespace

TEST_CASE("an indexed pool gives back what is free where that is most, and keeps what is in use") {
  IndexedPool<Counted> pool;
  std::vector<Counted*> taken;
  for (int i = 0; i < 100; ++i) {
    REQUIRE(pool.reserve(1));
    taken.push_back(&pool.take());
  }
  Counted* const kept = taken[37];
  const uint32_t index = kept->index;
  for (size_t i = 0; i < 50; ++i)
    if (taken[i] != kept) pool.give(*taken[i]);
  pool.trim();
  CHECK(Counted::alive == 100);  // half of them are in use
  for (size_t i = 50; i < 100; ++i) pool.give(*taken[i]);
  pool.trim();
  CHECK(Counted::alive == 1);
  CHECK(&pool.at(index) == kept);
  std::set<uint32_t> numbers{index};
  for (int i = 0; i < 150; ++i) {
    REQUIRE(pool.reserve(1));
    Counted& again = pool.take();
    CHECK(&pool.at(again.index) == &again);
    CHECK(numbers.insert(again.index).second);
  }
}
