// SPDX-License-Identifier: Apache-2.0

#include "dgram/pacer.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr float kRate = 10'000;  // one in 100 us

struct Scene {
  Pacer pacer;
  Time now{std::chrono::hours(1)};

  Scene() { pacer.set_rate(kRate); }
  /// As many as may be.
  uint32_t send() {
    const uint32_t count = pacer.quota(now);
    for (uint32_t i = 0; i < count; ++i) pacer.sent();
    return count;
  }
};

}  // namespace

TEST_CASE("pacer: without a rate nothing is held back") {
  Scene scene;
  scene.pacer.set_rate(0);
  CHECK(scene.pacer.quota(scene.now) == UINT32_MAX);
  scene.pacer.sent();
  CHECK(scene.pacer.quota(scene.now) == UINT32_MAX);
}

TEST_CASE("pacer: after a burst as many may go as the rate has in the time that has passed") {
  Scene scene;
  CHECK(scene.send() == 21);  // of 2 ms, and the first
  CHECK(scene.send() == 0);
  scene.now += milliseconds(1);
  CHECK(scene.send() == 10);
  uint64_t sent = 0;
  for (int i = 0; i < 1000; ++i) {
    scene.now += microseconds(70);
    sent += scene.send();
  }
  CHECK(sent >= 699);
  CHECK(sent <= 701);
}

TEST_CASE("pacer: a sender that comes late gets no more than a small burst") {
  Scene scene;
  scene.send();
  scene.now += milliseconds(500);
  CHECK(scene.send() == 21);
}

TEST_CASE("pacer: a few may follow each other however slow the rate") {
  Pacer pacer;
  pacer.set_rate(1);
  CHECK(pacer.quota(Time{std::chrono::hours(1)}) == Pacer::kLeastBurst);
}

TEST_CASE("pacer: what waits is due when a small burst may go") {
  Scene scene;
  scene.send();
  const Time due = scene.pacer.due();
  CHECK(due > scene.now);
  CHECK(due - scene.now <= milliseconds(1));
  scene.now = due;
  CHECK(scene.send() >= 5);
}

TEST_CASE("pacer: a clock that goes back does not stop it for long") {
  Scene scene;
  scene.send();
  scene.now -= std::chrono::hours(1);
  scene.send();
  scene.now += milliseconds(3);
  CHECK(scene.send() > 0);
}
