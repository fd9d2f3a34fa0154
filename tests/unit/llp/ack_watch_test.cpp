// SPDX-License-Identifier: Apache-2.0

#include "llp/ack_watch.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::llp;
using namespace std::chrono_literals;

namespace {

constexpr Duration kLimit = 20s;

/// A connection whose peer is looked after since time 0, and what TCP says about it.
struct Scene {
  Scene() { watch.start(Time{}); }

  /// A look at this time; the last answer came at `answered`.
  bool silent_at(Duration time, Duration answered) {
    state.since_ack = time - answered;
    return watch.is_silent(state, Time{} + time, kLimit);
  }

  AckWatch watch;
  AckState state{.outstanding = true};
};

}  // namespace

TEST_CASE("ack watch: a peer that acknowledges nothing is silent after the limit") {
  Scene scene;
  CHECK_FALSE(scene.silent_at(1s, -1h));  // long idle before
  scene.state.timeouts = scene.state.retransmitted = 3;
  CHECK_FALSE(scene.silent_at(19s, -1h));
  CHECK(scene.silent_at(20s, -1h));
}

TEST_CASE("ack watch: the time counts from the last answer") {
  Scene scene;
  CHECK_FALSE(scene.silent_at(1s, 1s));
  CHECK_FALSE(scene.silent_at(15s, 14s));
  scene.state.timeouts = scene.state.retransmitted = 6;
  CHECK_FALSE(scene.silent_at(33s, 14s));
  CHECK(scene.watch.silence() == 19s);
  CHECK(scene.silent_at(34s, 14s));
}

TEST_CASE("ack watch: fewer than three tries without an answer may have been lost") {
  Scene scene;
  scene.silent_at(1s, 0s);
  SECTION("retransmissions") {
    scene.state.retransmitted = 2;
    CHECK_FALSE(scene.silent_at(60s, 0s));
    scene.state.retransmitted = 3;
  }
  SECTION("retransmissions that found no way out") {
    scene.state.timeouts = 2;
    CHECK_FALSE(scene.silent_at(60s, 0s));
    scene.state.timeouts = 3;
  }
  SECTION("probes") {
    scene.state.probes = 2;
    CHECK_FALSE(scene.silent_at(60s, 0s));
    scene.state.probes = 3;
  }
  CHECK(scene.silent_at(61s, 0s));
}

TEST_CASE("ack watch: tries before the last answer do not count") {
  Scene scene;
  scene.silent_at(1s, 0s);
  scene.state.timeouts = scene.state.retransmitted = 9;
  scene.silent_at(30s, 29s);  // it acknowledged no new bytes: the timer's count stays
  CHECK_FALSE(scene.silent_at(60s, 29s));
  scene.state.timeouts = scene.state.retransmitted = 12;
  CHECK(scene.silent_at(61s, 29s));
}

TEST_CASE("ack watch: a peer that keeps its window closed and answers each probe is never silent") {
  Scene scene;
  scene.state.window_closed = true;
  for (int minute = 2; minute < 100; minute += 2) {
    const Duration time = minute * 1min;
    scene.state.probes = 1;
    CHECK_FALSE(scene.silent_at(time, time - 2min));
    scene.state.probes = 0;
    CHECK_FALSE(scene.silent_at(time + 1s, time));
    CHECK_FALSE(scene.silent_at(time + 100s, time));
  }
}

TEST_CASE("ack watch: silence while nothing is outstanding does not count") {
  Scene scene;
  scene.state.outstanding = false;
  CHECK_FALSE(scene.silent_at(1h, 0s));
  scene.state.outstanding = true;
  scene.state.timeouts = scene.state.retransmitted = 5;
  CHECK_FALSE(scene.silent_at(1h + 19s, 0s));
  CHECK(scene.silent_at(1h + 20s, 0s));
}

TEST_CASE("ack watch: the kernel's ticks are no answers") {
  Scene scene;
  scene.silent_at(1s, 0s);
  scene.state.retransmitted = 3;
  for (int i = 1; i <= 15; ++i) scene.silent_at(1s + i * 1s, Duration((i % 5) * 4ms));
  CHECK(scene.silent_at(21s, 3ms));
}
