// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/impairment_text.h"

#include "support/catch.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;

TEST_CASE("an impairment is read from text") {
  std::string why_not;
  const auto impairment = parse_impairment(
      "drop=0.25,seed=7,corrupt=1,duplicate=0,reorder_depth=9,delay=1500,jitter=0.5", why_not);
  REQUIRE(impairment);
  CHECK(impairment->drop == 0.25);
  CHECK(impairment->seed == 7);
  CHECK(impairment->corrupt == 1);
  CHECK(impairment->duplicate == 0);
  CHECK(impairment->reorder_depth == 9);
  CHECK(impairment->delay == 1500us);
  CHECK(impairment->jitter == 500ns);
}

TEST_CASE("an impairment that drops every nth datagram is read from text") {
  std::string why_not;
  const auto impairment = parse_impairment("every=3", why_not);
  REQUIRE(impairment);
  REQUIRE(impairment->drop_if);
  CHECK(!impairment->drop_if(0, {}));
  CHECK(!impairment->drop_if(1, {}));
  CHECK(impairment->drop_if(2, {}));
}

TEST_CASE("what is wrong with the text of an impairment is told") {
  const auto [text, told] =
      GENERATE(table<const char*, const char*>({{"", "NAME=NUMBER"},
                                                {"drop", "NAME=NUMBER"},
                                                {"=1", "NAME=NUMBER"},
                                                {"loss=0.1", "\"loss=0.1\""},
                                                {"drop=1.5", "drop needs a number from 0 to 1"},
                                                {"drop=-0.5", "drop needs"},
                                                {"drop=nan", "drop needs"},
                                                {"drop=", "drop needs"},
                                                {"drop=0.1x", "drop needs"},
                                                {"drop=0.1,", "NAME=NUMBER"},
                                                {"seed=1e300", "seed needs"},
                                                {"delay=inf", "delay needs"}}));
  std::string why_not;
  CHECK(!parse_impairment(text, why_not));
  CHECK_THAT(why_not, Catch::Matchers::ContainsSubstring(told));
}

}  // namespace
}  // namespace diwarp::llp
