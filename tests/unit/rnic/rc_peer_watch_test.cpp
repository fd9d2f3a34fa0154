// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_peer_watch.h"

#include <optional>
#include <vector>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

/// Tells what the test says, and keeps what it is asked for.
struct Probe final : llp::PeerProbe {
  std::optional<llp::AckState> ack_state() const override {
    ++looks;
    return state;
  }
  void keep_alive(Duration within) override { keep_alives.push_back(within); }
  void limit_backoff(Duration most) override { backoff = most; }
  std::optional<Duration> backoff_limit() const override { return backoff; }
  void clear_user_timeout() override { ++cleared; }

  std::optional<llp::AckState> state = llp::AckState{};
  mutable int looks = 0;
  int cleared = 0;
  std::vector<Duration> keep_alives;
  Duration backoff = 120s;
};

struct Fixture final : Memory, RcLossHandler {
  explicit Fixture(const PeerTimeouts& timeouts = {.keep_alive = 60s, .user_timeout = 20s}) {
    requester.start(4);
    watch.start(&probe, timeouts);
  }
  ~Fixture() { watch.stop(); }

  void lose_connection(RcEnd reason) override { losses.push_back(reason); }
  /// The timers that are due `after` kNow.
  void at(Duration after) { timers.run(kNow + after); }
  /// How long after kNow the next look is.
  std::optional<Duration> next_look() const {
    if (timers.empty()) return std::nullopt;
    return *timers.next() - kNow;
  }

  Sends sends;
  TimerQueue timers;
  RcRequester requester{protection, sends.queue};
  Probe probe;
  std::vector<RcEnd> losses;
  RcPeerWatch watch{timers, requester, *this};
};

}  // namespace

TEST_CASE("rc peer watch: nothing is looked after until something is sent") {
  Fixture f;
  CHECK(f.probe.cleared == 1);
  CHECK(f.probe.keep_alives == std::vector<Duration>{60s});
  CHECK_FALSE(f.next_look());
  f.watch.sent(kNow);
  CHECK(f.next_look() == 1s);
  f.watch.sent(kNow + 500ms);  // it is looked after already
  CHECK(f.next_look() == 1s);
  f.at(1s);
  CHECK(f.probe.looks == 1);
  CHECK_FALSE(f.next_look());  // nothing is outstanding
}

TEST_CASE("rc peer watch: looks are a twentieth of the user timeout apart, and 1 s at most") {
  Fixture f({.keep_alive = 60s, .user_timeout = 10s});
  f.watch.sent(kNow);
  CHECK(f.next_look() == 500ms);
  Fixture rare({.keep_alive = 60s, .user_timeout = 1h});
  rare.watch.sent(kNow);
  CHECK(rare.next_look() == 1s);
}

TEST_CASE("rc peer watch: without a probe, or without a user timeout, nothing is looked after") {
  Fixture f({.keep_alive = 60s, .user_timeout = 0s});
  f.watch.sent(kNow);
  CHECK_FALSE(f.next_look());
  f.watch.start(nullptr, {.keep_alive = 60s, .user_timeout = 20s});
  f.watch.sent(kNow);
  CHECK_FALSE(f.next_look());
}

TEST_CASE("rc peer watch: a peer that answers nothing for the user timeout is gone") {
  Fixture f;
  f.watch.sent(kNow);
  Duration after = 0s;
  while (f.losses.empty() && f.next_look()) {
    after = *f.next_look();
    f.probe.state = {.outstanding = true, .since_ack = after, .probes = 3};
    f.at(after);
  }
  CHECK(f.losses == std::vector{RcEnd::timed_out});
  CHECK(after == 20s);
  CHECK_FALSE(f.next_look());
}

TEST_CASE("rc peer watch: a peer that answers now and then is not gone") {
  Fixture f;
  f.watch.sent(kNow);
  for (Duration after = 1s; after <= 100s; after += 1s) {
    f.probe.state = {.outstanding = true, .since_ack = after % 15s, .probes = 3};
    f.at(after);
    REQUIRE(f.losses.empty());
  }
  CHECK(f.probe.looks == 100);
}

TEST_CASE("rc peer watch: while a response is pending the peer is probed within the user timeout") {
  Fixture f;
  f.requester.begin_ready();
  f.requester.begin();
  f.watch.sent(kNow);
  f.at(1s);
  CHECK(f.probe.keep_alives == std::vector<Duration>{60s, 20s});
  CHECK(f.next_look() == 2s);  // though TCP has nothing outstanding
  f.requester.start(4);
  f.at(2s);
  CHECK(f.probe.keep_alives == std::vector<Duration>{60s, 20s, 60s});
  CHECK_FALSE(f.next_look());
}

TEST_CASE("rc peer watch: a closed window is probed five times in a user timeout") {
  Fixture f;
  f.watch.sent(kNow);
  f.probe.state = {.outstanding = true, .window_closed = true};
  f.at(1s);
  CHECK(f.probe.backoff == 4s);
  f.probe.state = {.outstanding = true};
  f.at(2s);
  CHECK(f.probe.backoff == 120s);
}

TEST_CASE("rc peer watch: once stopped it neither looks nor asks for an end") {
  Fixture f;
  f.watch.sent(kNow);
  f.watch.stop();
  CHECK_FALSE(f.next_look());
  f.watch.sent(kNow);
  CHECK_FALSE(f.next_look());
  CHECK(f.probe.looks == 0);
}

TEST_CASE("rc peer watch: a stream that knows nothing of its peer is not looked after") {
  Fixture f;
  f.probe.state.reset();
  f.watch.sent(kNow);
  f.at(1s);
  CHECK(f.probe.looks == 1);
  CHECK_FALSE(f.next_look());
  CHECK(f.losses.empty());
}
