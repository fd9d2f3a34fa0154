// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/takeover.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

namespace {

const Time kStart = Time(1h);

struct Scene {
  /// The application polls now, and each microsecond for so long.
  void poll_for(Duration time) {
    takeover.stepped(clock.now());
    for (Duration passed{}; passed < time; passed += 1us) {
      clock.advance(1us);
      takeover.stepped(clock.now());
    }
  }
  bool drives() const { return takeover.application_drives(clock.now()); }

  ManualClock clock{kStart};
  Takeover takeover{DeviceOptions{.takeover = 80us}, clock};
};

}  // namespace

TEST_CASE("an application drives once it has polled for an eighth of the takeover") {
  Scene scene;
  CHECK_FALSE(scene.drives());
  scene.poll_for(10us);
  CHECK(scene.drives());

  Scene shorter;
  shorter.poll_for(9us);
  CHECK_FALSE(shorter.drives());
}

TEST_CASE("an application drives until it pauses for half of the takeover") {
  Scene scene;
  scene.poll_for(20us);
  scene.clock.advance(39us);
  CHECK(scene.drives());
  scene.clock.advance(1us);
  CHECK_FALSE(scene.drives());
}

TEST_CASE("polls before a long pause do not count") {
  Scene scene;
  scene.poll_for(20us);
  scene.clock.advance(1ms);
  scene.poll_for(5us);
  CHECK_FALSE(scene.drives());
  scene.poll_for(5us);
  CHECK(scene.drives());
}

TEST_CASE("the time after the last poll does not count") {
  Scene scene;
  for (const Duration time : {0us, 5us}) {
    scene.poll_for(time);
    scene.clock.advance(30us);
    CHECK_FALSE(scene.drives());
    scene.clock.advance(1ms);
  }
}

TEST_CASE("an application that is served between short polls never drives") {
  Scene scene;
  for (int i = 0; i < 100; ++i) {
    scene.poll_for(5us);
    CHECK_FALSE(scene.drives());
    scene.clock.advance(10us);
    CHECK_FALSE(scene.drives());
    scene.takeover.served();
  }
}

TEST_CASE("an application that hands over drives no more") {
  Scene scene;
  scene.poll_for(20us);
  scene.takeover.hand_over();
  CHECK_FALSE(scene.drives());
  scene.poll_for(5us);
  CHECK_FALSE(scene.drives());
}
