// SPDX-License-Identifier: Apache-2.0

#include "dgram/bbr.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using Catch::Approx;
using std::chrono::milliseconds;
using std::chrono::seconds;
using State = Bbr::State;

namespace {

constexpr Duration kRoundTrip = milliseconds(10);
constexpr float kRate = 10'000;  // datagrams a second: 100 in a round trip
constexpr uint32_t kInRound = 100;

/// Acknowledgements as a path with such a rate and round trip has them, one for each round.
struct Scene {
  Bbr bbr;
  Time now{std::chrono::hours(1)};
  uint32_t delivered = 0;

  void round(float rate = kRate, Duration round_trip = kRoundTrip, uint32_t in_flight = kInRound,
             bool app_limited = false, uint32_t came = kInRound) {
    AckNews news;
    news.sent = now;
    now += round_trip;
    news.came = came;
    news.rate = {.rate = rate, .delivered_at_send = delivered, .app_limited = app_limited};
    delivered += came;
    news.delivered = delivered;
    news.in_flight = in_flight;
    news.sample = news.smoothed = round_trip;
    bbr.acknowledged(news, now);
  }
  void rounds(int count, float rate = kRate, Duration round_trip = kRoundTrip) {
    for (int i = 0; i < count; ++i) round(rate, round_trip);
  }
  /// Has found the rate, and keeps it.
  void settle() {
    rounds(8);
    REQUIRE(bbr.state() == State::probe_rate);
  }
  /// A queue that is too short to show loses some of what is tried above the rate.
  void overflow(uint32_t count) {
    bool more = false;
    for (int i = 0; i < 32 && !bbr.is_shallow(); ++i) {
      if (more) lose(count);
      more = bbr.pacing_rate() > 1.2F * kRate;
      round();
    }
  }
  void lose(uint32_t count) { bbr.lost(count, now - kRoundTrip, now); }
};

}  // namespace

TEST_CASE("bbr: startup goes on while the rate grows by a quarter, and then the queue is drained") {
  Scene scene;
  CHECK(scene.bbr.window() == CongestionController::kInitialWindow);
  CHECK(scene.bbr.pacing_rate() == 0);  // nothing is known of the path
  for (float rate = 100; rate <= kRate; rate *= 2) {
    scene.round(rate);
    CHECK(scene.bbr.state() == State::startup);
  }
  scene.rounds(2, 6'400);
  CHECK(scene.bbr.state() == State::startup);
  CHECK(scene.bbr.pacing_rate() > 2 * 6'400);
  scene.round(6'400, kRoundTrip, 200);
  REQUIRE(scene.bbr.state() == State::drain);
  CHECK(scene.bbr.pacing_rate() < 6'400 / 2);
  scene.round(6'400, kRoundTrip, 64);
  CHECK(scene.bbr.state() == State::probe_rate);
}

TEST_CASE("bbr: a round trip that grows ends startup") {
  Scene scene;
  for (float rate = 100; rate < 1'000; rate *= 2) scene.round(rate);
  REQUIRE(scene.bbr.state() == State::startup);
  scene.round(2'000, 2 * kRoundTrip, 500);
  scene.round(4'000, 2 * kRoundTrip, 500);
  CHECK(scene.bbr.state() == State::drain);
}

TEST_CASE("bbr: what is in flight is bounded by twice the rate times the shortest round trip") {
  Scene scene;
  scene.settle();
  CHECK(scene.bbr.rate() == Approx(kRate));
  CHECK(scene.bbr.shortest() == kRoundTrip);
  scene.rounds(16);
  CHECK(scene.bbr.window() >= 2 * kInRound);
  // And what comes with one acknowledgement, and two bursts of a millisecond.
  CHECK(scene.bbr.window() <= 3 * kInRound + 20);
}

TEST_CASE("bbr: a cycle of rounds tries a quarter more, and then a quarter less") {
  Scene scene;
  scene.settle();
  int more = 0, less = 0, as_much = 0;
  for (int i = 0; i < 16; ++i) {
    scene.round();
    const float gain = scene.bbr.pacing_rate() / kRate;
    more += gain == Approx(1.25);
    less += gain == Approx(0.75);
    as_much += gain == Approx(1);
  }
  CHECK(more == 2);
  CHECK(less == 2);
  CHECK(as_much == 12);
}

TEST_CASE("bbr: losses while the round trip is short change nothing, and one with a queue does") {
  Scene scene;
  scene.settle();
  const uint32_t before = scene.bbr.window();
  for (int i = 0; i < 20; ++i) {
    scene.lose(5);
    scene.round();
  }
  CHECK(scene.bbr.window() >= before);
  CHECK(scene.bbr.rate() == Approx(kRate));
  scene.lose(1);
  CHECK(scene.bbr.window() >= before);
  scene.rounds(2, kRate, 2 * kRoundTrip);
  REQUIRE(scene.bbr.queue_stands());
  // Of the CUBIC window, which may have been larger than what the model allows.
  for (int i = 0; i < 10 && scene.bbr.window() >= before; ++i) {
    scene.lose(1);
    scene.round(kRate, 2 * kRoundTrip);
    scene.lose(1);
  }
  CHECK(scene.bbr.window() < before);
}

TEST_CASE("bbr: one round trip that an end was not scheduled in is no queue and no lower rate") {
  Scene scene;
  scene.settle();
  scene.rounds(20);
  const uint32_t before = scene.bbr.window();
  scene.round(kRate / 2, 2 * kRoundTrip);
  CHECK_FALSE(scene.bbr.queue_stands());
  scene.lose(3);
  scene.rounds(8);
  CHECK(scene.bbr.rate() == Approx(kRate));
  CHECK(scene.bbr.window() >= before);
}

TEST_CASE("bbr: a rate that has become lower is known after two cycles") {
  Scene scene;
  scene.settle();
  scene.rounds(21, kRate / 4);
  CHECK(scene.bbr.rate() == Approx(kRate / 4));
}

TEST_CASE("bbr: a rate that the application limited counts only where it is higher") {
  Scene scene;
  scene.settle();
  for (int i = 0; i < 7; ++i) scene.round(kRate / 10, kRoundTrip, 1, true);
  CHECK(scene.bbr.rate() == Approx(kRate));
  scene.round(kRate * 2, kRoundTrip, 1, true);
  CHECK(scene.bbr.rate() == Approx(kRate * 2));
}

TEST_CASE("bbr: a rate is remembered for as long as the application sends little") {
  Scene scene;
  scene.settle();
  for (int i = 0; i < 50; ++i) scene.round(kRate / 100, kRoundTrip, 1, true, 1);
  CHECK(scene.bbr.rate() == Approx(kRate));
  scene.rounds(24, kRate / 4);
  CHECK(scene.bbr.rate() == Approx(kRate / 4));
}

TEST_CASE("bbr: an application that sends little does not end startup") {
  Scene scene;
  for (int i = 0; i < 50; ++i) scene.round(100, kRoundTrip, 0, true);
  CHECK(scene.bbr.state() == State::startup);
}

TEST_CASE("bbr: what is lost by chance is made up for") {
  Scene scene;
  scene.settle();
  for (int i = 0; i < 64; ++i) {
    scene.lose(25);  // beside 100 that come
    scene.round();
  }
  CHECK(scene.bbr.random_loss() == Approx(0.2).margin(0.01));
  while (scene.bbr.pacing_rate() > kRate * 1.3) scene.round();
  CHECK(scene.bbr.pacing_rate() >= kRate * 0.75);
  for (int i = 0; i < 80; ++i) scene.round();
  CHECK(scene.bbr.random_loss() < 0.01);
}

TEST_CASE("bbr: what a full queue loses, or what came after all, was not lost by chance") {
  Scene scene;
  scene.settle();
  SECTION("a full queue") {
    scene.rounds(2, kRate, 2 * kRoundTrip);
    for (int i = 0; i < 32; ++i) {
      scene.lose(25);
      scene.round(kRate, 2 * kRoundTrip);
    }
  }
  SECTION("came after all") {
    for (int i = 0; i < 32; ++i) {
      scene.lose(25);
      scene.bbr.spurious(25);
      scene.round();
    }
  }
  CHECK(scene.bbr.random_loss() == 0);
}

TEST_CASE("bbr: a queue that others fill leaves the window to CUBIC") {
  Scene scene;
  scene.settle();
  CHECK_FALSE(scene.bbr.competes());
  scene.rounds(20, kRate, 2 * kRoundTrip);
  REQUIRE(scene.bbr.competes());
  const uint32_t before = scene.bbr.window();
  scene.lose(1);
  CHECK(scene.bbr.window() == Approx(before * 0.7).margin(1));
  scene.rounds(20);
  CHECK_FALSE(scene.bbr.competes());
}

TEST_CASE("bbr: a queue that overflows before it shows leaves the window to CUBIC") {
  Scene scene;
  scene.settle();
  scene.overflow(20);
  REQUIRE(scene.bbr.is_shallow());
  CHECK(scene.bbr.random_loss() == 0);
  scene.rounds(2);
  const uint32_t before = scene.bbr.window();
  scene.lose(1);
  CHECK(scene.bbr.window() == Approx(before * 0.7).margin(1));
  scene.rounds(3, kRate, 2 * kRoundTrip);
  CHECK_FALSE(scene.bbr.is_shallow());  // the queue shows
}

TEST_CASE("bbr: what is lost in each round alike is no short queue's") {
  Scene scene;
  scene.settle();
  for (int i = 0; i < 400; ++i) {
    scene.lose(i % 3 == 0 ? 30 : 20);
    scene.round();
    REQUIRE_FALSE(scene.bbr.is_shallow());
  }
}

TEST_CASE("bbr: of a short queue that loses by chance, too, only what is beyond that counts") {
  Scene scene;
  scene.settle();
  bool more = false;
  for (int i = 0; i < 60 && !scene.bbr.is_shallow(); ++i) {
    scene.lose(more ? 45 : 5);
    more = scene.bbr.pacing_rate() > 1.2F * kRate / (1 - scene.bbr.random_loss());
    scene.round();
  }
  REQUIRE(scene.bbr.is_shallow());
  for (int i = 0; i < 10; ++i) {
    scene.lose(5);
    scene.round();
  }
  CHECK(scene.bbr.random_loss() == Approx(0.05).margin(0.01));
  const uint32_t before = scene.bbr.window();
  scene.lose(5);
  CHECK(scene.bbr.window() == before);
  scene.lose(30);
  CHECK(scene.bbr.window() < before);
}

TEST_CASE("bbr: what empties the queue does not make up for losses") {
  Scene scene;
  scene.settle();
  float least = kRate;
  for (int i = 0; i < 64; ++i) {
    scene.lose(25);
    scene.round();
    least = std::min(least, scene.bbr.pacing_rate());
  }
  CHECK(least == Approx(0.75 * kRate));
}

TEST_CASE("bbr: after ten seconds the shortest round trip is measured with little in flight") {
  constexpr Duration kLonger = kRoundTrip + milliseconds(2);
  Scene scene;
  scene.settle();
  const auto wait = [&](Duration round_trip) {
    for (int i = 0; i < 1500 && scene.bbr.state() == State::probe_rate; ++i)
      scene.round(kRate, round_trip);
    REQUIRE(scene.bbr.state() == State::probe_round_trip);
    CHECK(scene.bbr.window() <= kInRound);
    for (int i = 0; i < 10 && scene.bbr.state() != State::probe_rate; ++i)
      scene.round(kRate, round_trip, 50);
    REQUIRE(scene.bbr.state() == State::probe_rate);
  };
  const Time begin = scene.now;
  wait(kLonger);
  CHECK(scene.now - begin > Bbr::kShortestFor);
  CHECK(scene.bbr.shortest() == kLonger);
  // A path that has become much longer looks like a queue of others, but not for ever.
  for (int i = 0; i < Bbr::kMostQueuedProbes; ++i) {
    CHECK(scene.bbr.shortest() == kLonger);
    wait(5 * kRoundTrip);
  }
  CHECK(scene.bbr.shortest() == 5 * kRoundTrip);
  CHECK_FALSE(scene.bbr.competes());
}

TEST_CASE(
    "bbr: after a silence the round trip is not probed at once, nor others taken to be there") {
  Scene scene;
  scene.settle();
  scene.rounds(20, kRate, 2 * kRoundTrip);
  REQUIRE(scene.bbr.competes());
  scene.now += 2 * Bbr::kShortestFor;
  scene.bbr.idled();
  CHECK_FALSE(scene.bbr.competes());
  CHECK_FALSE(scene.bbr.queue_stands());
  scene.round(kRate, kRoundTrip + milliseconds(1));
  CHECK(scene.bbr.state() == State::probe_rate);
  CHECK(scene.bbr.shortest() == kRoundTrip);
  const Time begin = scene.now;
  while (scene.bbr.state() == State::probe_rate) scene.round(kRate, kRoundTrip + milliseconds(1));
  CHECK(scene.now - begin > Bbr::kShortestFor);
}

TEST_CASE("bbr: a rate that cannot be has no more in flight than there may be") {
  Scene scene;
  scene.settle();
  scene.round(1e20F);
  CHECK(scene.bbr.window() == CongestionController::kMaxWindow);
}

TEST_CASE("bbr: acknowledgements that come in heaps allow more in flight") {
  Scene scene;
  scene.settle();
  const uint32_t before = scene.bbr.window();
  for (int i = 0; i < 4; ++i) {
    scene.now += 4 * kRoundTrip;
    scene.round(kRate, kRoundTrip, kInRound, false, 5 * kInRound);
  }
  CHECK(scene.bbr.window() > before + kInRound);
}

TEST_CASE("bbr: a silence that collapses the window has the path measured anew") {
  Scene scene;
  scene.settle();
  scene.bbr.collapsed(scene.now);
  CHECK(scene.bbr.window() == Bbr::kLeastWindow);
  CHECK(scene.bbr.state() == State::startup);
  scene.rounds(12);
  CHECK(scene.bbr.window() > kInRound / 2);
}

TEST_CASE("bbr: a clock that jumps, either way, breaks nothing") {
  Scene scene;
  scene.settle();
  for (const Duration jump : {Duration(std::chrono::hours(100)), Duration(-std::chrono::hours(100)),
                              Duration(-seconds(5)), Duration(seconds(5))}) {
    scene.now += jump;
    for (int i = 0; i < 50; ++i) {
      scene.lose(1);
      scene.round();
      CHECK(scene.bbr.window() >= Bbr::kLeastWindow);
      CHECK(scene.bbr.pacing_rate() >= kRate / 4);
    }
  }
}
