// SPDX-License-Identifier: Apache-2.0

#include "dgram/loss_detector.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using std::chrono::milliseconds;

namespace {

constexpr Time kNow{std::chrono::hours(1)};
constexpr Time kLater = kNow + milliseconds(1);

/// Whether the one of this order is lost, though time has not run out for it.
bool is_lost(LossDetector& detector, uint32_t order) {
  detector.begin_pass();
  return detector.is_lost(order, kLater, kNow);
}

}  // namespace

TEST_CASE("loss detector: a transmission is lost when the third after it came") {
  LossDetector detector;
  CHECK_FALSE(detector.any_came());
  detector.came(3);
  CHECK_FALSE(is_lost(detector, 1));
  detector.came(4);
  CHECK(is_lost(detector, 1));
  CHECK_FALSE(is_lost(detector, 2));
  CHECK_FALSE(is_lost(detector, 5));
  CHECK(detector.latest_is_before(5));
}

TEST_CASE("loss detector: one that was overtaken is lost when its time has run out, others not") {
  LossDetector detector;
  detector.came(2);
  detector.begin_pass();
  CHECK_FALSE(detector.is_lost(1, kLater, kNow));
  CHECK_FALSE(detector.is_lost(3, kNow, kNow));
  CHECK(detector.loss_time() == kLater);
  detector.begin_pass();
  CHECK(detector.loss_time() == Time::max());
  CHECK(detector.is_lost(1, kLater, kLater));
}

TEST_CASE("loss detector: late arrivals have it tolerate more, up to 64") {
  LossDetector detector;
  detector.came(100);
  CHECK(is_lost(detector, 97));
  detector.tolerate_more();
  CHECK_FALSE(is_lost(detector, 95));
  CHECK(is_lost(detector, 94));
  for (int i = 0; i < 20; ++i) detector.tolerate_more();
  CHECK_FALSE(is_lost(detector, 37));
  CHECK(is_lost(detector, 36));
}

TEST_CASE("loss detector: orders wrap, and an older arrival changes nothing") {
  LossDetector detector;
  detector.came(1);  // the first one after the wrap
  detector.came(0xFFFFFFF0);
  CHECK(is_lost(detector, 0xFFFFFFFE));
  CHECK_FALSE(is_lost(detector, 0xFFFFFFFF));
  CHECK_FALSE(is_lost(detector, 2));
}
