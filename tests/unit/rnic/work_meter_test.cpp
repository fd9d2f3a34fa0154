// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/work_meter.h"

#include "rnic/engine/control_turn.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

TEST_CASE("a work meter has one step in so many timed") {
  WorkMeter meter;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t step = 1; step < kStepsPerMeasure; ++step) CHECK_FALSE(meter.is_due());
    CHECK(meter.is_due());
    meter.restart();
  }
}

TEST_CASE("without a control path one step in so many has an end") {
  ControlTurn turn;
  for (int round = 0; round < 3; ++round) {
    for (uint32_t step = 1; step < kStepsPerMeasure; ++step) CHECK_FALSE(turn.is_due());
    CHECK(turn.is_due());
    CHECK(turn.take(true) == 0);
    CHECK(turn.restart());
  }
}

TEST_CASE("with a control path each step has an end, and one in so many is timed") {
  ControlTurn turn;
  for (uint32_t step = 1; step < kStepsPerMeasure / 2; ++step) CHECK_FALSE(turn.is_due());
  size_t turns = 0;
  turn.set_step([&] { return ++turns; });
  for (uint32_t step = 1; step <= 2 * kStepsPerMeasure; ++step) {
    REQUIRE(turn.is_due());
    CHECK(turn.take(false) == step);
    CHECK(turn.restart() == (step % kStepsPerMeasure == 0));
  }
  for (uint32_t step = 1; step <= 2 * kStepsPerControl; ++step) {
    REQUIRE(turn.is_due());
    CHECK((turn.take(true) != 0) == (step % kStepsPerControl == 0));
    turn.restart();
  }
  turn.set_step({});
  CHECK(turn.is_due());
  CHECK(turn.take(false) == 0);
  CHECK(turn.restart());
  CHECK_FALSE(turn.is_due());
}

TEST_CASE("a timed step stands for all that were not") {
  CHECK(WorkMeter::estimate(5us) == 5000 * kStepsPerMeasure);
  CHECK(WorkMeter::estimate(0ns) == 0);
}

TEST_CASE("a step whose thread lost its processor counts as a long step") {
  CHECK(WorkMeter::estimate(4s) == WorkMeter::estimate(kMeasureLimit));
}

TEST_CASE("a clock that stands still or goes back adds nothing") {
  CHECK(WorkMeter::estimate(-1ns) == 0);
}
