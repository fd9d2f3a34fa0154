// SPDX-License-Identifier: Apache-2.0
#include "base/budgeted_array.h"

#include <utility>
#include <vector>

#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;

namespace {

using Numbers = BudgetedArray<int, 2>;

std::vector<int> contents(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

}  // namespace

TEST_CASE("a budgeted array inserts and erases anywhere") {
  Numbers numbers;
  for (int i : {1, 3, 5, 7}) REQUIRE(numbers.push_back(i));
  REQUIRE(numbers.insert(0, 0));
  REQUIRE(numbers.insert(2, 2));
  CHECK(contents(numbers) == std::vector{0, 1, 2, 3, 5, 7});
  numbers.erase(0);
  numbers.erase(3);
  numbers.pop_back();
  CHECK(contents(numbers) == std::vector{1, 2, 3});
  CHECK(numbers.back() == 3);
}

TEST_CASE("a budgeted array takes from its budget what it holds, and gives it back") {
  MemoryBudget budget(16 * sizeof(int));
  {
    Numbers numbers(&budget);
    REQUIRE((numbers.push_back(1) && numbers.push_back(2)));
    CHECK(budget.used() == 0);
    REQUIRE(numbers.push_back(3));
    CHECK(budget.used() == 4 * sizeof(int));
    REQUIRE((numbers.push_back(4) && numbers.push_back(5)));
    CHECK(budget.used() == 8 * sizeof(int));
    Numbers other(std::move(numbers));
    CHECK(contents(other) == std::vector{1, 2, 3, 4, 5});
    CHECK(budget.used() == 8 * sizeof(int));
    other.clear();
    CHECK(budget.used() == 0);
    REQUIRE((other.push_back(1) && other.push_back(2) && other.push_back(3)));
  }
  CHECK(budget.used() == 0);
}

TEST_CASE("a budgeted array without budget or memory says so and keeps what it has") {
  MemoryBudget budget(4 * sizeof(int));
  Numbers numbers(&budget);
  for (int i : {1, 2, 3, 4}) REQUIRE(numbers.push_back(i));
  CHECK_FALSE(numbers.push_back(5));
  Numbers starving;
  REQUIRE((starving.push_back(1) && starving.push_back(2)));
  bool grew = true;
  {
    const test::Starvation none(1);
    grew = starving.push_back(3);
  }
  CHECK_FALSE(grew);
  CHECK(contents(numbers) == std::vector{1, 2, 3, 4});
  CHECK(contents(starving) == std::vector{1, 2});
  CHECK(starving.push_back(3));
}
