// SPDX-License-Identifier: Apache-2.0

#include "dgram/loss_detector.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = LossDetector::Verdict;

namespace {

constexpr Time kSent{std::chrono::hours(1)};
constexpr Duration kRoundTrip = milliseconds(8);

struct Scene {
  LossDetector detector;
  RoundTrip round_trip;

  Scene() { round_trip.add(kRoundTrip); }
  /// Of a transmission made at kSent.
  Verdict check(uint32_t order, Duration after) {
    detector.begin_pass(round_trip);
    return detector.check(order, kSent, kSent + after);
  }
  /// How long after its transmission one that was overtaken is lost.
  Duration patience(uint32_t order) {
    REQUIRE(check(order, Duration(0)) == Verdict::overtaken);
    return detector.loss_time() - kSent;
  }
};

}  // namespace

TEST_CASE("loss detector: a transmission is lost when the third after it came") {
  Scene scene;
  CHECK(scene.check(1, seconds(9)) == Verdict::in_flight);
  scene.detector.came(3, kRoundTrip);
  CHECK(scene.check(1, Duration(0)) == Verdict::overtaken);
  scene.detector.came(4, kRoundTrip);
  CHECK(scene.check(1, Duration(0)) == Verdict::lost);
  CHECK(scene.check(2, Duration(0)) == Verdict::overtaken);
  CHECK(scene.check(5, seconds(9)) == Verdict::in_flight);
}

TEST_CASE("loss detector: one that was overtaken is lost a quarter of a round trip too late") {
  Scene scene;
  scene.detector.came(2, kRoundTrip);
  CHECK(scene.patience(1) == kRoundTrip * 5 / 4);
  CHECK(scene.check(1, kRoundTrip * 5 / 4 - Duration(1)) == Verdict::overtaken);
  CHECK(scene.check(1, kRoundTrip * 5 / 4) == Verdict::lost);
  CHECK(scene.detector.loss_time() == Time::max());
}

TEST_CASE("loss detector: where the network reorders, time alone tells") {
  Scene scene;
  scene.detector.reordered();
  scene.detector.came(100, kRoundTrip);
  CHECK(scene.patience(1) == kRoundTrip * 5 / 4);
}

TEST_CASE("loss detector: late arrivals widen the window, up to a round trip, for 16 rounds") {
  Scene scene;
  scene.detector.came(100, kRoundTrip);
  scene.detector.tolerate_more();
  CHECK(scene.patience(1) == kRoundTrip * 6 / 4);
  for (int i = 0; i < 200; ++i) scene.detector.tolerate_more();
  CHECK(scene.patience(1) == kRoundTrip * 2);
  for (int i = 1; i < LossDetector::kRoundsToForget; ++i) scene.detector.lost_in_round();
  CHECK(scene.patience(1) == kRoundTrip * 2);
  scene.detector.lost_in_round();
  CHECK(scene.patience(1) == kRoundTrip * 5 / 4);
}

TEST_CASE("loss detector: orders wrap, and an older arrival changes nothing") {
  Scene scene;
  scene.detector.came(1, kRoundTrip);  // the first one after the wrap
  scene.detector.came(0xFFFFFFF0, seconds(9));
  CHECK(scene.check(0xFFFFFFFE, Duration(0)) == Verdict::lost);
  CHECK(scene.patience(0xFFFFFFFF) == kRoundTrip * 5 / 4);
  CHECK(scene.check(2, Duration(0)) == Verdict::in_flight);
}

TEST_CASE("loss detector: nothing is waited for longer than a second") {
  Scene scene;
  scene.round_trip.add(seconds(100));
  scene.detector.came(2, seconds(100));
  CHECK(scene.patience(1) == LossDetector::kLongestWait);
}

TEST_CASE(
    "loss detector: before a round trip is measured nothing is waited for, whatever came late") {
  LossDetector detector;
  detector.came(2, kRoundTrip);
  for (int i = 0; i < 100; ++i) detector.tolerate_more();
  detector.begin_pass(RoundTrip());
  CHECK(detector.check(1, kSent, kSent) == Verdict::overtaken);
  CHECK(detector.loss_time() == kSent + kRoundTrip);
}
