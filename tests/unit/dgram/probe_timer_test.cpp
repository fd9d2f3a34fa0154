// SPDX-License-Identifier: Apache-2.0

#include "dgram/probe_timer.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Time kNow{std::chrono::hours(1)};
constexpr Duration kOnce = milliseconds(10);
constexpr Duration kLongest = seconds(1);

}  // namespace

TEST_CASE("probe timer: each timeout in a row is twice as long, up to the longest") {
  ProbeTimer timer;
  timer.sent(kNow);
  Time now = kNow;
  for (uint16_t timeouts = 1; timeouts <= 100; ++timeouts) {
    const Duration wait = timer.due(false, kOnce, kLongest) - now;
    CHECK(wait == (timeouts <= 7 ? kOnce * (1 << (timeouts - 1)) : kLongest));
    now += wait;
    CHECK(timer.expired(now) == timeouts);
    CHECK(timer.last_sent() == now);
  }
  SECTION("news make it short again") {
    timer.news(now);
    CHECK(timer.due(false, kOnce, kLongest) == now + kOnce);
    CHECK(timer.expired(now + kOnce) == 1);
  }
  SECTION("a sign of life does not") {
    timer.heard(now);
    CHECK(timer.due(true, kOnce, kLongest) == now + kLongest);
  }
}

TEST_CASE("probe timer: a sign of life counts for what is idle alone") {
  ProbeTimer timer;
  timer.sent(kNow);
  timer.heard(kNow + milliseconds(5));
  CHECK(timer.due(true, kOnce, kLongest) == kNow + milliseconds(15));
  CHECK(timer.due(false, kOnce, kLongest) == kNow + kOnce);
}

TEST_CASE("probe timer: a first timeout beyond the longest is cut to it") {
  ProbeTimer timer;
  timer.sent(kNow);
  CHECK(timer.due(false, seconds(3), kLongest) == kNow + kLongest);
  timer.expired(kNow + kLongest);
  CHECK(timer.due(false, seconds(3), kLongest) == kNow + 2 * kLongest);
}
