// SPDX-License-Identifier: Apache-2.0
#include "ddp/closed_messages.h"

#include <set>

#include "base/random.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

/// The same promise over numbers that do not wrap.
class Model {
 public:
  explicit Model(size_t limit) : limit_(limit) {}

  bool contains(uint64_t n) const { return n <= floor_ || closed_.count(n) != 0; }

  bool close(uint64_t n) {
    if (contains(n)) return false;
    closed_.insert(n);
    if (closed_.size() > limit_) {
      floor_ = *closed_.begin();
      closed_.erase(closed_.begin());
    }
    return true;
  }

  size_t remembered() const { return closed_.size(); }

 private:
  size_t limit_;
  std::set<uint64_t> closed_;
  uint64_t floor_ = 0;
};

constexpr uint64_t kCircle = uint64_t{1} << 32;

/// Closes numbers in random order around a point that moves on by `stride` every other step, and
/// compares with the model.
void compare(uint64_t seed, size_t limit, uint64_t start, uint64_t spread, uint64_t stride = 1) {
  Random random(seed);
  ClosedMessages closed(limit);
  Model model(limit);
  const auto msn = [](uint64_t n) { return static_cast<uint32_t>(n); };
  for (uint64_t step = 0; step < 3000; ++step) {
    const uint64_t n = start + step / 2 * stride + random.below(spread);
    if (closed.close(msn(n)) != model.close(n)) FAIL("close " << n << " at step " << step);
    if (closed.remembered() != model.remembered()) FAIL("remembered at step " << step);
    for (int probe = 0; probe < 10; ++probe) {
      const uint64_t asked = start + step / 2 * stride + random.below(3 * spread) - spread;
      if (closed.contains(msn(asked)) != model.contains(asked)) {
        FAIL("contains " << asked << " at step " << step);
      }
    }
  }
}

}  // namespace

TEST_CASE("nothing of a source that was never seen is closed") {
  const ClosedMessages closed;
  for (uint32_t msn : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu}) {
    CHECK_FALSE(closed.contains(msn));
  }
  CHECK(closed.remembered() == 0);
}

TEST_CASE("closing a message again says so") {
  ClosedMessages closed;
  CHECK(closed.close(7));
  CHECK_FALSE(closed.close(7));
  CHECK(closed.contains(7));
  CHECK_FALSE(closed.contains(6));
  CHECK_FALSE(closed.contains(8));
  CHECK(closed.remembered() == 1);
}

TEST_CASE("a message closed before the first of its source is remembered too") {
  ClosedMessages closed;
  CHECK(closed.close(100));
  CHECK(closed.close(90));
  CHECK(closed.close(95));
  CHECK(closed.contains(90));
  CHECK_FALSE(closed.contains(91));
  CHECK_FALSE(closed.contains(89));
  CHECK(closed.remembered() == 3);
}

TEST_CASE("runs on both sides join when the number between them is closed") {
  ClosedMessages closed;
  for (uint32_t msn : {1u, 2u, 4u, 5u, 3u}) CHECK(closed.close(msn));
  for (uint32_t msn = 1; msn <= 5; ++msn) {
    CHECK(closed.contains(msn));
    CHECK_FALSE(closed.close(msn));
  }
  CHECK_FALSE(closed.contains(0));
  CHECK_FALSE(closed.contains(6));
  CHECK(closed.remembered() == 5);
}

TEST_CASE("beyond the limit the oldest becomes the floor and everything below it closed") {
  ClosedMessages closed(4);
  for (uint32_t msn : {10u, 20u, 30u, 40u}) CHECK(closed.close(msn));
  CHECK_FALSE(closed.contains(9));
  CHECK(closed.close(50));  // forgets 10
  CHECK(closed.remembered() == 4);
  CHECK(closed.contains(10));
  CHECK(closed.contains(9));
  CHECK_FALSE(closed.close(9));
  CHECK_FALSE(closed.contains(11));
  CHECK(closed.close(11));  // the oldest of five: the floor at once
  CHECK(closed.contains(11));
  CHECK_FALSE(closed.contains(12));
  CHECK(closed.remembered() == 4);
  for (uint32_t msn : {20u, 30u, 40u, 50u}) CHECK(closed.contains(msn));
}

TEST_CASE("a long run in order is one entry that needs no memory and stays within the limit") {
  ClosedMessages closed;
  const uint32_t start = 0xFFFFF000;
  CHECK(closed.close(start));
  const size_t before = test::allocations();
  bool all_new = true;
  for (uint32_t i = 1; i < 20000; ++i) all_new = closed.close(start + i) && all_new;
  CHECK(test::allocations() == before);
  CHECK(all_new);
  CHECK(closed.remembered() == 1024);
  CHECK(closed.contains(start + 19999));
  CHECK_FALSE(closed.contains(start + 20000));
  CHECK(closed.contains(start));
}

TEST_CASE("closed messages equal a set over random order") {
  for (uint64_t seed = 0; seed < 10; ++seed) compare(seed, 16, kCircle + 5000, 40);
  for (uint64_t seed = 0; seed < 10; ++seed) compare(seed, 64, kCircle + 5000, 300);
}

TEST_CASE("closed messages equal a set over random order across the wrap") {
  for (uint64_t seed = 0; seed < 10; ++seed) compare(seed, 16, 2 * kCircle - 700, 40);
  for (uint64_t seed = 0; seed < 10; ++seed) compare(seed, 200, 2 * kCircle - 700, 500);
}

TEST_CASE("closed messages equal a set over random order across the middle of the circle") {
  for (uint64_t seed = 0; seed < 10; ++seed) compare(seed, 100, kCircle + kCircle / 2 - 700, 300);
}

TEST_CASE("closed messages equal a set over a source that goes round the circle") {
  for (uint64_t seed = 0; seed < 5; ++seed) compare(seed, 20, kCircle + 5000, 40, 1 << 22);
  for (uint64_t seed = 0; seed < 5; ++seed) compare(seed, 20, kCircle, kCircle / 64, 1 << 24);
}

TEST_CASE("neighbours that close in the wrong order end up in one entry") {
  ClosedMessages closed(100);
  for (uint32_t msn : {0u, 2u, 1u}) closed.close(msn);
  const size_t before = test::allocations();
  for (uint32_t msn = 3; msn < 5000; msn += 2) {
    closed.close(msn + 1);
    closed.close(msn);
  }
  CHECK(test::allocations() == before);
  CHECK(closed.remembered() == 100);
}

TEST_CASE("closed messages equal a set with limits of one and none") {
  compare(1, 1, kCircle + 5000, 20);
  compare(2, 0, kCircle + 5000, 20);
}

TEST_CASE("numbers that leap over the whole circle keep the bound and stay closed") {
  Random random(99);
  ClosedMessages closed(32);
  for (int round = 0; round < 100000; ++round) {
    const auto msn = static_cast<uint32_t>(random.next());
    const bool was_closed = closed.contains(msn);
    REQUIRE(closed.close(msn) == !was_closed);
    REQUIRE(closed.contains(msn));
    REQUIRE(closed.remembered() <= 32);
  }
}

TEST_CASE("refused messages are over, and close no others") {
  ClosedMessages closed;
  CHECK(closed.close(10));
  for (uint32_t i = 0; i < 1100; ++i) closed.refuse(0x20000000 + 2 * i, false);
  CHECK(closed.contains(0x20000000 + 2 * 1099));
  CHECK_FALSE(closed.contains(0x20000000 + 2 * 1099 + 1));
  CHECK_FALSE(closed.contains(11));
  CHECK(closed.remembered() == 1);
  CHECK(closed.close(11));
}

TEST_CASE("of too many refused runs the oldest is forgotten") {
  ClosedMessages closed(1024, 8);
  for (uint32_t i = 0; i < 9; ++i) closed.refuse(10 * i, false);
  CHECK(closed.refused_runs() == 8);
  CHECK_FALSE(closed.contains(0));
  for (uint32_t i = 1; i < 9; ++i) CHECK(closed.contains(10 * i));
}

TEST_CASE("refused messages that follow each other are one run, whatever their number") {
  ClosedMessages closed(1024, 1);
  const uint32_t start = 0xFFFFFF00;
  for (uint32_t i = 0; i < 5000; ++i) closed.refuse(start + i, true);
  CHECK(closed.refused_runs() == 1);
  CHECK(closed.contains(start));
  CHECK(closed.contains(start + 4999));
  CHECK_FALSE(closed.contains(start + 5000));
  CHECK_FALSE(closed.contains(start - 1));
}

TEST_CASE("half the number circle after the first message none follows the one before it") {
  ClosedMessages closed(2);
  for (uint32_t msn : {0u, 0x7fffffffu, 0x80000000u}) CHECK(closed.close(msn));
  // The last one was the oldest of three, so it is the floor.
  CHECK(closed.contains(1));
}

TEST_CASE("a frugal source's refused messages take no memory") {
  ClosedMessages closed;
  const size_t before = test::allocations();
  for (uint32_t i = 0; i < 100; ++i) closed.refuse(10 * i, true);
  CHECK(test::allocations() == before);
  CHECK(closed.refused_runs() == ClosedMessages::kFreeRuns);
}

TEST_CASE("the floor takes refused runs with it, so that their numbers may come again") {
  ClosedMessages closed(4);
  CHECK(closed.close(0));
  closed.refuse(5, false);
  closed.refuse(100, false);
  for (uint32_t msn : {10u, 20u, 30u, 40u, 50u}) CHECK(closed.close(msn));
  CHECK(closed.refused_runs() == 1);
  CHECK(closed.contains(5));  // below the floor
  CHECK(closed.contains(100));
}

TEST_CASE("without memory closed messages forget sooner, and stay closed") {
  MemoryBudget budget(64);
  ClosedMessages closed(1024, 256, &budget);
  for (uint32_t i = 0; i < 500; ++i) {
    CHECK(closed.close(2 * i));
    CHECK(closed.contains(2 * i));
    CHECK(budget.used() <= 64);
  }
  CHECK(closed.contains(0));
  CHECK_FALSE(closed.contains(999));
  CHECK(closed.remembered() < 10);
  for (uint32_t i = 0; i < 500; ++i) closed.refuse(10'000 + 2 * i, false);
  CHECK(closed.contains(10'998));
  CHECK(closed.refused_runs() <= 8);
}
