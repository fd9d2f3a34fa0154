// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "base/intrusive_list.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/ring.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;

TEST_CASE("a ring refuses what does not fit and keeps the rest") {
  Ring<int> ring(2);
  CHECK(ring.empty());
  CHECK(ring.push_back(1));
  CHECK(ring.push_back(2));
  CHECK(ring.full());
  CHECK_FALSE(ring.push_back(3));
  CHECK_FALSE(ring.push_front(3));
  CHECK(ring.front() == 1);
  CHECK(ring.back() == 2);
  Ring<int> none(0);
  CHECK(none.full());
  CHECK_FALSE(none.push_back(1));
}

TEST_CASE("a ring behaves as a double-ended queue under random operations") {
  const size_t capacity = GENERATE(1u, 3u, 8u);
  Random random(capacity);
  Ring<uint64_t> ring(capacity);
  std::deque<uint64_t> model;
  const size_t before = test::allocations();
  size_t model_allocations = 0;
  for (uint64_t step = 0; step < 2000; ++step) {
    const uint64_t action = random.below(5);
    if (action < 2) {
      REQUIRE(ring.push_back(step) == (model.size() < capacity));
    } else if (action == 2) {
      REQUIRE(ring.push_front(step) == (model.size() < capacity));
    } else if (!model.empty()) {
      ring.pop_front();
    }
    const size_t now = test::allocations();
    if (action < 2 && model.size() < capacity) {
      model.push_back(step);
    } else if (action == 2 && model.size() < capacity) {
      model.push_front(step);
    } else if (action > 2 && !model.empty()) {
      model.pop_front();
    }
    model_allocations += test::allocations() - now;
    REQUIRE(ring.size() == model.size());
    for (size_t i = 0; i < model.size(); ++i) REQUIRE(ring[i] == model[i]);
  }
  CHECK(test::allocations() - before == model_allocations);
}

TEST_CASE("a ring releases what was popped or cleared") {
  const auto shared = std::make_shared<int>(7);
  Ring<std::shared_ptr<int>> ring(4);
  for (int i = 0; i < 4; ++i) ring.push_back(shared);
  CHECK(shared.use_count() == 5);
  ring.pop_front();
  CHECK(shared.use_count() == 4);
  ring.clear();
  CHECK(shared.use_count() == 1);
  CHECK(ring.empty());
}

namespace {

struct Left;
struct Right;

struct Item : ListNode<Left>, ListNode<Right> {
  explicit Item(int number) : value(number) {}
  int value;
};

using LeftList = IntrusiveList<Item, Left>;

std::vector<int> values(LeftList& list) {
  std::vector<int> result;
  for (Item* item = list.front(); item != nullptr; item = list.next(*item)) {
    result.push_back(item->value);
  }
  return result;
}

bool in_left(const Item& item) { return item.ListNode<Left>::linked(); }

}  // namespace

TEST_CASE("an intrusive list keeps order and removes from anywhere") {
  Item a(1), b(2), c(3), d(4);
  LeftList list;
  CHECK(list.empty());
  CHECK(list.front() == nullptr);
  CHECK(list.back() == nullptr);
  CHECK(list.pop_front() == nullptr);
  list.push_back(b);
  list.push_back(c);
  list.push_back(d);
  list.push_front(a);
  CHECK(values(list) == std::vector{1, 2, 3, 4});
  CHECK(list.back() == &d);
  list.remove(c);
  CHECK_FALSE(in_left(c));
  CHECK(in_left(b));
  CHECK(values(list) == std::vector{1, 2, 4});
  list.remove(c);
  CHECK(values(list) == std::vector{1, 2, 4});
  list.remove(d);
  CHECK(list.pop_front() == &a);
  CHECK(list.front() == &b);
  list.push_back(a);
  CHECK(values(list) == std::vector{2, 1});
}

TEST_CASE("an object is in two intrusive lists of different tags at once") {
  Item a(1), b(2);
  LeftList left;
  IntrusiveList<Item, Right> right;
  left.push_back(a);
  left.push_back(b);
  right.push_back(b);
  right.push_back(a);
  left.remove(a);
  CHECK(values(left) == std::vector{2});
  CHECK(right.front() == &b);
  CHECK(right.next(b) == &a);
}

TEST_CASE("nodes leave a dying list, and a dying node leaves its list") {
  Item survivor(1);
  {
    LeftList list;
    list.push_back(survivor);
    {
      Item passing(2);
      list.push_front(passing);
      CHECK(values(list) == std::vector{2, 1});
    }
    CHECK(values(list) == std::vector{1});
    CHECK(in_left(survivor));
  }
  CHECK_FALSE(in_left(survivor));
}

TEST_CASE("a pool makes an object where none is free, and lends the one released last") {
  struct Fixed {
    explicit Fixed(int number) : value(number) {}
    Fixed(const Fixed&) = delete;
    Fixed& operator=(const Fixed&) = delete;
    int value;
  };
  Pool<Fixed> pool;
  CHECK(pool.acquire() == nullptr);
  std::vector<Fixed*> lent;
  for (int i = 0; i < 100; ++i) lent.push_back(&pool.acquire_or_make(i));
  CHECK(pool.capacity() == 100);
  for (int i = 0; i < 100; ++i) {
    CHECK(pool.owns(lent[static_cast<size_t>(i)]));
    CHECK(lent[static_cast<size_t>(i)]->value == i);
  }
  const size_t before = test::allocations();
  for (Fixed* item : lent) pool.release(item);
  Fixed& again = pool.acquire_or_make(-1);
  const size_t after = test::allocations();
  CHECK(after == before);
  CHECK(&again == lent.back());
  CHECK(again.value == 99);  // as its last user left it
  CHECK(pool.available() == 99);
}

TEST_CASE("a pool lends each object once and then has none") {
  Pool<int> pool(3);
  CHECK(pool.available() == 3);
  const size_t before = test::allocations();
  int* lent[] = {pool.acquire(), pool.acquire(), pool.acquire()};
  CHECK(pool.acquire() == nullptr);
  const size_t after = test::allocations();
  CHECK(after == before);
  CHECK(std::set<int*>(std::begin(lent), std::end(lent)).size() == 3);
  for (int* item : lent) CHECK(pool.owns(item));
  pool.release(lent[1]);
  CHECK(pool.available() == 1);
  CHECK(pool.acquire() == lent[1]);
  int foreign = 0;
  CHECK_FALSE(pool.owns(&foreign));
}
