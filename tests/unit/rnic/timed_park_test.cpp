// SPDX-License-Identifier: Apache-2.0
// The RNIC thread is parked while the application drives, and the application puts off the end of
// that. The kernel's record of the park's timer tells when it would end: no test waits for that.
#include <dirent.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "diwarp/error.h"
#include "rnic/engine/engine.h"
#include "rnic/engine/timed_park.h"
#include "support/catch.h"

namespace diwarp::rnic {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;

/// Seconds until a timer of this process ends; 0: there is none, or it is not set.
int64_t seconds_to_end() {
  for (int fd = 0; fd < 64; ++fd) {
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(fd));
    for (std::string word; info >> word;) {
      if (word != "it_value:") continue;
      char bracket = 0;
      int64_t seconds = 0;
      info >> bracket >> seconds;
      return seconds;
    }
  }
  return 0;
}

bool soon(const auto& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// The RNIC thread reads it, too.
class SharedClock final : public Clock {
 public:
  Time now() const override { return now_.load(); }
  void advance(Duration by) { now_.store(now_.load() + by); }

 private:
  std::atomic<Time> now_{Time(1h)};
};

/// An engine whose RNIC thread has begun a timed park of an hour.
struct Parked {
  Parked() {
    engine.poll_step();
    clock.advance(options.takeover / 6);  // it drives now
    engine.poll_step();
    engine.wake();  // from where it may wait
    REQUIRE(soon([&] { return engine.poll_step(), seconds_to_end() > 0; }));
  }

  SharedClock clock;
  Counters counters;
  DeviceOptions options{.takeover = 1h, .takeover_limit = 3h};
  Engine engine{options, clock, counters};
};

TEST_CASE("timed park: ends when its time has passed, though that was set before it began") {
  TimedPark park;
  park.end_in(0s);
  park.wait();
  park.end_in(1ms);
  park.wait();
}

TEST_CASE("timed park: another thread brings the end forward") {
  TimedPark park;
  park.end_in(24h);
  std::thread other([&] { park.end_in(0s); });
  park.wait();
  other.join();
}

TEST_CASE(
    "timed park: a thread that polls without a pause puts it off, each time for longer, up to the "
    "limit") {
  Parked parked;
  CHECK(seconds_to_end() <= 3600);
  const auto poll_for = [&](Duration time) {
    for (Duration passed{}; passed < time; passed += 10min) {
      parked.clock.advance(10min);
      parked.engine.poll_step();
    }
  };
  poll_for(30min);
  CHECK(seconds_to_end() > 3600);
  CHECK(seconds_to_end() <= 2 * 3600);
  poll_for(90min);
  CHECK(seconds_to_end() > 2 * 3600);
  CHECK(seconds_to_end() <= 3 * 3600);
  poll_for(150min);
  CHECK(seconds_to_end() <= 3 * 3600);
}

TEST_CASE(
    "timed park: a thread that polls with pauses of less than half of `takeover` puts it off") {
  Parked parked;
  for (int i = 0; i < 4; ++i) {
    parked.clock.advance(29min);
    parked.engine.poll_step();
  }
  CHECK(seconds_to_end() > 3600);
}

TEST_CASE("timed park: is not put off before half of it has passed") {
  Parked parked;
  for (int i = 0; i < 2; ++i) {
    parked.clock.advance(10min);
    parked.engine.poll_step();
  }
  CHECK(seconds_to_end() <= 3600);
}

TEST_CASE("timed park: a thread that polls now and then does not put it off") {
  Parked parked;
  parked.clock.advance(55min);
  parked.engine.poll_step();
  parked.engine.poll_step();
  CHECK(seconds_to_end() <= 3600);
}

TEST_CASE("timed park: handing over ends it, and so does the end of the engine") {
  Parked parked;
  if (GENERATE(true, false)) {
    parked.engine.hand_over();
    CHECK(soon([] { return seconds_to_end() == 0; }));
  }
}

}  // namespace
}  // namespace diwarp::rnic
