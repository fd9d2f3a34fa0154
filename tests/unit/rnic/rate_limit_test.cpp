// SPDX-License-Identifier: Apache-2.0

#include "rnic/datagram/error_reports.h"
#include "support/catch.h"

using namespace diwarp;
using namespace std::chrono_literals;
using rnic::RateLimit;

namespace {

size_t take_all(RateLimit& limit, Time now) {
  size_t taken = 0;
  while (taken < 100000 && limit.take(now)) ++taken;
  return taken;
}

}  // namespace

TEST_CASE("a rate limit lets a tenth of a second's worth through at once, then the rate") {
  RateLimit limit(1000);
  CHECK(take_all(limit, Time(500s)) == 100);
  CHECK_FALSE(limit.take(Time(500s)));
  CHECK(take_all(limit, Time(500s) + 20ms) == 20);
  size_t taken = 0;
  for (int step = 0; step < 1000; ++step) taken += take_all(limit, Time(501s) + step * 1ms);
  CHECK(taken >= 1099 - 20);
  CHECK(taken <= 1101);
}

TEST_CASE("a rate limit gathers nothing beyond its burst, and one of zero lets nothing through") {
  RateLimit limit(10);
  CHECK(take_all(limit, Time(1000s)) == 1);
  CHECK(take_all(limit, Time(2000s)) == 1);
  RateLimit closed(0);
  CHECK_FALSE(closed.take(Time(1000s)));
  CHECK_FALSE(closed.take(Time(9000s)));
}
