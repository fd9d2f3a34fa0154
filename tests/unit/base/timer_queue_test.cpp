// SPDX-License-Identifier: Apache-2.0
#include "base/timer_queue.h"

#include <map>
#include <memory>
#include <vector>

#include "base/random.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace std::chrono_literals;

namespace {

Time at(int64_t nanoseconds) { return Time{} + Duration(nanoseconds); }

/// A timer that writes its number down when it fires.
struct Noting {
  Noting(int number, std::vector<int>& log) : number_(number), log_(log) {}
  void note(Time) { log_.push_back(number_); }

  int number_;
  std::vector<int>& log_;
  MemberTimer<Noting, &Noting::note> timer{*this};
};

/// Arms itself again.
struct Repeating {
  explicit Repeating(TimerQueue& timers) : queue(timers) {}
  void again(Time now) {
    ++fired;
    queue.arm(timer, now + step);
  }

  TimerQueue& queue;
  Duration step = 0ns;
  int fired = 0;
  MemberTimer<Repeating, &Repeating::again> timer{*this};
};

}  // namespace

TEST_CASE("timers fire in the order of their deadlines and not too early") {
  std::vector<int> log;
  TimerQueue queue;
  Noting a(1, log), b(2, log), c(3, log);
  queue.arm(c.timer, at(30));
  queue.arm(a.timer, at(10));
  queue.arm(b.timer, at(20));
  CHECK(queue.next() == at(10));
  CHECK(queue.run(at(9)) == 0);
  CHECK(queue.run(at(20)) == 2);
  CHECK(log == std::vector{1, 2});
  CHECK_FALSE(a.timer.armed());
  CHECK(c.timer.armed());
  CHECK(queue.next() == at(30));
  CHECK(queue.run(at(1000)) == 1);
  CHECK(queue.next() == std::nullopt);
  CHECK(log == std::vector{1, 2, 3});
}

TEST_CASE("a cancelled timer does not fire, and cancelling twice is harmless") {
  std::vector<int> log;
  TimerQueue queue;
  Noting a(1, log), b(2, log);
  queue.arm(a.timer, at(10));
  queue.arm(b.timer, at(20));
  queue.cancel(a.timer);
  queue.cancel(a.timer);
  CHECK_FALSE(a.timer.armed());
  CHECK(queue.run(at(100)) == 1);
  CHECK(log == std::vector{2});
}

TEST_CASE("arming an armed timer moves its deadline both ways") {
  std::vector<int> log;
  TimerQueue queue;
  Noting a(1, log), b(2, log);
  queue.arm(a.timer, at(10));
  queue.arm(b.timer, at(20));
  queue.arm(a.timer, at(30));
  CHECK(queue.size() == 2);
  CHECK(queue.next() == at(20));
  queue.arm(a.timer, at(5));
  CHECK(queue.next() == at(5));
  CHECK(a.timer.deadline() == at(5));
  CHECK(queue.run(at(100)) == 2);
  CHECK(log == std::vector{1, 2});
}

TEST_CASE("a run is bounded even when timers arm themselves for now") {
  TimerQueue queue;
  Repeating repeating(queue);
  queue.arm(repeating.timer, at(1));
  CHECK(queue.run(at(1), 5) == 5);
  CHECK(repeating.fired == 5);
  repeating.step = 10ns;
  CHECK(queue.run(at(1), 5) == 1);
  CHECK(queue.next() == at(11));
  queue.cancel(repeating.timer);
}

TEST_CASE("a timer may cancel and destroy another one that is due") {
  struct Killer {
    TimerQueue& queue;
    std::unique_ptr<Noting>& victim;
    void kill(Time) {
      queue.cancel(victim->timer);
      victim.reset();
    }
    MemberTimer<Killer, &Killer::kill> timer{*this};
  };
  std::vector<int> log;
  TimerQueue queue;
  auto victim = std::make_unique<Noting>(1, log);
  Killer killer{queue, victim};
  queue.arm(killer.timer, at(1));
  queue.arm(victim->timer, at(2));
  CHECK(queue.run(at(3)) == 1);
  CHECK(log.empty());
  CHECK(queue.empty());
}

TEST_CASE("timers are idle after their queue is gone") {
  std::vector<int> log;
  Noting a(1, log);
  {
    TimerQueue queue;
    queue.arm(a.timer, at(1));
  }
  CHECK_FALSE(a.timer.armed());
}

TEST_CASE("a timer queue agrees with a sorted map under random operations without allocating") {
  constexpr size_t kTimers = 50;
  std::vector<int> log;
  log.reserve(kTimers);
  TimerQueue queue;
  queue.add_places(kTimers);
  std::vector<std::unique_ptr<Noting>> timers;
  for (int i = 0; i < static_cast<int>(kTimers); ++i) {
    timers.push_back(std::make_unique<Noting>(i, log));
  }
  std::map<int, int64_t> model;  // number to deadline
  Random random(5);
  size_t allocated = 0;
  int64_t now = 0;
  for (int step = 0; step < 5000; ++step) {
    const auto chosen = static_cast<int>(random.below(kTimers));
    Timer& timer = timers[static_cast<size_t>(chosen)]->timer;
    const uint64_t action = random.below(10);
    const int64_t deadline = now + static_cast<int64_t>(random.below(100));
    log.clear();
    const size_t before = test::allocations();
    if (action < 6) queue.arm(timer, at(deadline));
    if (action == 6 || action == 7) queue.cancel(timer);
    if (action > 7) queue.run(at(now += 5));
    allocated += test::allocations() - before;

    if (action < 6) model[chosen] = deadline;
    if (action == 6 || action == 7) model.erase(chosen);
    int64_t previous = 0;
    for (int fired : log) {
      REQUIRE(model.contains(fired));
      REQUIRE(model[fired] <= now);
      REQUIRE(model[fired] >= previous);
      previous = model[fired];
      model.erase(fired);
    }
    if (action > 7) {
      for (const auto& [number, due] : model) REQUIRE(due > now);
    }
    REQUIRE(queue.size() == model.size());
    int64_t earliest = INT64_MAX;
    for (const auto& [number, due] : model) earliest = std::min(earliest, due);
    if (!model.empty()) REQUIRE(queue.next() == at(earliest));
  }
  CHECK(allocated == 0);
  for (auto& timer : timers) queue.cancel(timer->timer);
}

TEST_CASE("a manual clock moves only when told") {
  ManualClock clock;
  const Clock& seen = clock;
  CHECK(seen.now() == at(0));
  clock.advance(15ns);
  CHECK(seen.now() == at(15));
  clock.set(at(3));
  CHECK(seen.now() == at(3));
}

TEST_CASE("the steady clock never goes back") {
  const Clock& clock = SteadyClock::instance();
  const Time first = clock.now();
  CHECK(clock.now() >= first);
  CHECK(first > Time{});
}
