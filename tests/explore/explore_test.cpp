// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string_view>

#include "explorer.h"

using namespace diwarp::explore;

namespace {

/// Plays a scenario to a depth that CI has time for; a violation fails the test with its trace.
void check(std::string_view text, uint32_t datagrams, uint32_t faults) {
  const Scenario scenario = Scenario::parse(text);
  const Limits limits{.depth = {.datagrams = datagrams}, .faults = faults, .stop_at_first = true};
  const Report report = explore(scenario, limits);
  for (const Counterexample& one : report.counterexamples)
    FAIL_CHECK("--scenario '" << text << "' --depth " << datagrams << " --replay " << one.script
                              << '\n'
                              << replay(scenario, limits.depth, one.script));
  CHECK(report.runs > 1);
}

}  // namespace

TEST_CASE("explore: Sends in both directions") { check("s2,s1/s1,s2", 8, 1); }

TEST_CASE("explore: a message is not lost where a Read Response beside it is given up",
          "[!shouldfail]") {
  check("s3,s3/r3 gone window=4", 12, 2);
}

TEST_CASE("explore: a Read Request that comes early and is refused leaves its place",
          "[!shouldfail]") {
  check("s1,r1x/s1,r1x", 8, 1);
}

TEST_CASE("explore: a Read ends whose region goes away after a part of it came", "[!shouldfail]") {
  check("r3/ gone", 8, 2);
}
