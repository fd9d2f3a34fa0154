// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_fpdu_queue.h"

#include <vector>

#include "support/catch.h"

using namespace diwarp::rnic;

namespace {

struct Fixture {
  Fixture() { queue.use(memory); }
  void push(uint32_t whole) {
    queue.next().whole = whole;
    queue.push();
  }

  std::vector<RcFpdu> memory = std::vector<RcFpdu>(kBurstFpdus);
  RcFpduQueue queue;
};

}  // namespace

TEST_CASE("rc fpdu queue: bytes that the stream took end FPDUs in their order") {
  Fixture f;
  f.push(100);
  f.push(200);
  size_t bytes = 150;
  REQUIRE(f.queue.take_sent(bytes));
  CHECK(bytes == 50);
  f.queue.pop();
  CHECK_FALSE(f.queue.take_sent(bytes));
  CHECK(bytes == 0);
  CHECK(f.queue.sent() == 50);
  CHECK(f.queue.size() == 1);
  CHECK(f.queue.waiting_bytes() == 200);  // all of an FPDU, of which the stream has a part
  bytes = 150;
  CHECK(f.queue.take_sent(bytes));
  f.queue.pop();
  CHECK(f.queue.empty());
  CHECK(f.queue.sent() == 0);
}

TEST_CASE("rc fpdu queue: it goes round its memory, and the order stays") {
  Fixture f;
  for (uint32_t length = 1; length <= 3 * kBurstFpdus; ++length) {
    if (f.queue.size() == kBurstFpdus) {
      CHECK(f.queue.front().whole == length - kBurstFpdus);
      f.queue.pop();
    }
    f.push(length);
  }
  for (size_t i = 0; i < kBurstFpdus; ++i) CHECK(f.queue.at(i).whole == 2 * kBurstFpdus + 1 + i);
}

TEST_CASE("rc fpdu queue: what it holds moves into larger memory, and the order stays") {
  Fixture f;
  std::vector<RcFpdu> few(4);
  f.queue.use(few);
  for (uint32_t length = 1; length <= 6; ++length) {
    if (f.queue.size() == 4) f.queue.pop();
    f.push(length);
  }
  f.queue.use(f.memory);
  f.push(7);
  REQUIRE(f.queue.size() == 5);
  for (uint32_t i = 0; i < 5; ++i) CHECK(f.queue.at(i).whole == i + 3);
}
