// SPDX-License-Identifier: Apache-2.0

#include "dgram/delivery_rate.h"

#include <deque>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using Catch::Approx;
using std::chrono::milliseconds;

namespace {

constexpr Duration kRoundTrip = milliseconds(10);

struct Scene {
  DeliveryRate rate;
  Time now{std::chrono::hours(1)};
  std::deque<TxSlot> flight;

  void send(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      TxSlot slot;
      slot.sent = now;
      rate.sent(slot, flight.empty(), now);
      flight.push_back(slot);
    }
  }
  /// So many of the oldest came, with one acknowledgement.
  RateSample acknowledge(uint32_t count) {
    TxSlot latest;
    for (uint32_t i = 0; i < count; ++i) {
      latest = flight.front();
      flight.pop_front();
      rate.came();
    }
    return rate.sample(latest, kRoundTrip, now);
  }
};

}  // namespace

TEST_CASE("delivery rate: what came in the time from a transmission to its acknowledgement") {
  Scene scene;
  scene.send(10);
  scene.now += kRoundTrip;
  const RateSample sample = scene.acknowledge(10);
  CHECK(sample.rate == Approx(1000).epsilon(0.01));
  CHECK(sample.delivered_at_send == 0);
  CHECK_FALSE(sample.app_limited);
  CHECK(scene.rate.delivered() == 10);
}

TEST_CASE("delivery rate: acknowledgements that come in a heap do not make it higher") {
  Scene scene;
  // One each millisecond, while the acknowledgements are held up.
  for (int i = 0; i < 40; ++i) {
    scene.send(1);
    scene.now += milliseconds(1);
  }
  RateSample last;
  for (int i = 0; i < 40; ++i) last = scene.acknowledge(1);
  CHECK(last.rate <= 1100);
}

TEST_CASE("delivery rate: a sample of less than a round trip says nothing") {
  Scene scene;
  scene.send(10);
  scene.now += kRoundTrip / 2;
  CHECK(scene.acknowledge(10).rate == 0);
}

TEST_CASE("delivery rate: what is sent while there is little to send is known to be limited") {
  Scene scene;
  scene.rate.limited_by_application(0);
  scene.send(2);
  scene.now += kRoundTrip;
  CHECK(scene.acknowledge(2).app_limited);
  scene.send(2);
  scene.now += kRoundTrip;
  CHECK_FALSE(scene.acknowledge(2).app_limited);
}

TEST_CASE("delivery rate: a clock that goes back gives no rate") {
  Scene scene;
  scene.send(10);
  scene.now -= milliseconds(100);
  CHECK(scene.acknowledge(10).rate == 0);
}
