// SPDX-License-Identifier: Apache-2.0
#include <regex>
#include <string>
#include <string_view>

#include "explorer.h"
#include "support/catch.h"
#include "support/sanitizers.h"

using namespace diwarp::explore;

namespace {

/// Plays a scenario to a depth that CI has time for; a violation fails the test with its trace.
void check(std::string_view text, uint32_t datagrams, uint32_t faults) {
  const Scenario scenario = Scenario::parse(text);
  const Limits limits{.depth = {.datagrams = diwarp::test::exhaustive_depth(datagrams)},
                      .faults = faults,
                      .stop_at_first = true};
  const Report report = explore(scenario, limits);
  for (const Counterexample& one : report.counterexamples)
    FAIL_CHECK("--scenario '" << text << "' --depth " << datagrams << " --replay " << one.script
                              << '\n'
                              << replay(scenario, limits.depth, one.script));
  CHECK(report.runs > 1);
}

/// A trace without the names and first numbers, which are drawn anew for each run.
std::string without_names(const std::string& trace) {
  return std::regex_replace(trace, std::regex("[0-9]{5,}"), "#");
}

}  // namespace

TEST_CASE("explore: every scenario, with one fault at a time") {
  for (const std::string_view scenario : scenarios()) check(scenario, 12, 1);
}

TEST_CASE("explore: two faults at a time, where nothing but the network is at fault") {
  check("s2,s1/s1,s2", 8, 2);
  check("s3,w2/r2,s1", 8, 2);
  check("r2,r1/s2,r3", 8, 2);
  check("s2,s1/s1,r2 cold", 8, 2);
}

TEST_CASE("explore: two faults at a time, and a peer that begins anew") {
  check("s2,r2/w2,s1 anew", 7, 2);
  check("r2,s1/s2,r1 reset cold", 7, 2);
}

TEST_CASE("explore: two faults at a time, and a region that goes away") {
  check("r3,s1/r2,w2 gone", 7, 2);
  check("w3,s1/w2,r2 gone", 7, 2);
}

TEST_CASE("explore: a message is not lost where a Read Response beside it is given up") {
  check("s3,s3/r3,s1 gone window=4", 8, 2);
}

TEST_CASE("explore: a Read Request that comes early and is refused leaves its place") {
  check("s1,r1x/s1,r1x", 8, 1);
}

TEST_CASE("explore: a Send that the link refuses in its middle does not fail the next one") {
  check("s4,s1/ untold window=1", 8, 1);
}

TEST_CASE("explore: a Write-Record whose region is invalidated fails for that reason") {
  check("w3,s1/s1~,r3~ invalidate", 8, 1);
}

TEST_CASE(
    "explore: a message that was delivered is not delivered to the next incarnation as well") {
  check("s2/ narrow anew batch", 4, 3);
}

TEST_CASE("explore: a Write-Record that was refused does not succeed in the next association") {
  check("w2/ narrow gone", 5, 3);
}

TEST_CASE(
    "explore: a Write-Record after a Read that is repeated goes on where it is repeated itself") {
  check("r2,w3/ narrow", 9, 2);
  check("r2,r1,w3/ narrow", 10, 2);
}

TEST_CASE(
    "explore: a Write-Record is not delivered twice by a peer that forgets before the path "
    "narrows") {
  check("w3/ narrow pause", 7, 2);
}

TEST_CASE(
    "explore: a receive that an unfinished Send holds comes back when its source begins anew") {
  check("s2,s1~/ reset window=1", 13, 2);
}

TEST_CASE("explore: a Write-Record that failed is not open at its target") {
  check("s3/w3 narrow", 11, 2);
}

TEST_CASE("explore: a Read ends whose responses are too long for the path") {
  check("s3,r3/w2,s1 hole", 8, 1);
}

TEST_CASE("explore: a Read whose region goes away fails for that reason") {
  check("s1,s1/r3 gone window=4", 7, 2);
}

TEST_CASE("explore: a Read ends whose region goes away after a part of it came") {
  check("r3/ gone", 8, 2);
}

TEST_CASE("explore: a run can be repeated") {
  const Scenario scenario = Scenario::parse("s3,r3/w3,s2 gone reset");
  const Depth depth{.datagrams = 12};
  const std::string once = without_names(replay(scenario, depth, "3:6,5:8"));
  CHECK(once == without_names(replay(scenario, depth, "3:6,5:8")));
  CHECK(once != without_names(replay(scenario, depth, "3:6,5:7")));
  CHECK(once.find("***") != once.npos);
}
