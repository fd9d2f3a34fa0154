// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/idle_polls.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

namespace {

const Time kStart = Time(1h);

}  // namespace

TEST_CASE("a thread that polls in vain yields once in each interval") {
  IdlePolls polls(50us);
  CHECK_FALSE(polls.is_yield_due(kStart, true));
  CHECK_FALSE(polls.is_yield_due(kStart + 49us, false));
  CHECK(polls.is_yield_due(kStart + 50us, false));
  CHECK_FALSE(polls.is_yield_due(kStart + 51us, false));
  CHECK_FALSE(polls.is_yield_due(kStart + 99us, false));
  CHECK(polls.is_yield_due(kStart + 100us, false));
}

TEST_CASE("a poll that finds work puts the yield off") {
  IdlePolls polls(50us);
  CHECK_FALSE(polls.is_yield_due(kStart, true));
  CHECK_FALSE(polls.is_yield_due(kStart + 40us, true));
  CHECK_FALSE(polls.is_yield_due(kStart + 89us, false));
  CHECK(polls.is_yield_due(kStart + 90us, false));
}

TEST_CASE("an interval of zero makes each poll in vain yield, and the longest none") {
  IdlePolls always(Duration::zero());
  IdlePolls never(Duration::max());
  for (const Time now : {kStart, kStart, kStart + 1us, kStart + 24h}) {
    CHECK(always.is_yield_due(now, false));
    CHECK_FALSE(always.is_yield_due(now, true));
    CHECK_FALSE(never.is_yield_due(now, false));
  }
}
