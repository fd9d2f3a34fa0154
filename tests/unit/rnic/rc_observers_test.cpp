// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_observers.h"

#include <memory>
#include <system_error>
#include <vector>
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

/// Counts what it is told.
struct Observer final : ConnectionObserver {
  void on_ready() override { ++ready; }
  void on_end(std::error_code status) override { ends.push_back(status); }
  void on_detached() override { ++detached; }

  int ready = 0;
  int detached = 0;
  std::vector<std::error_code> ends;
};

bool is_woken(RcObservers::Waiter& waiter) { return waiter.blocking_wait.wait(Duration::zero()); }

}  // namespace

TEST_CASE("rc observers: one observer at a time is told, and that it is none any more") {
  const auto first = std::make_shared<Observer>();
  const auto second = std::make_shared<Observer>();
  const std::error_code silent = std::make_error_code(std::errc::timed_out);
  RcObservers observers;
  observers.tell_ready();  // there is none
  observers.tell_end({});
  observers.observe(first);
  observers.tell_ready();
  observers.observe(second);
  observers.tell_end(silent);
  CHECK(first->ready == 1);
  CHECK(first->ends.empty());
  CHECK(first->detached == 1);
  CHECK(second->ready == 0);
  CHECK(second->ends == std::vector{silent});
  CHECK(second->detached == 0);
  observers.observe(nullptr);
  observers.tell_end({});
  CHECK(second->ends.size() == 1);
  CHECK(second->detached == 1);
  CHECK(first->detached == 1);
}

TEST_CASE("rc observers: every thread that waits is woken, and none that has left") {
  RcObservers observers;
  RcObservers::Waiter first, second, left;
  observers.add(first);
  observers.add(left);
  observers.add(second);
  left.unlink();
  CHECK_FALSE(is_woken(first));
  observers.wake_waiters();
  CHECK(is_woken(first));
  CHECK(is_woken(second));
  CHECK_FALSE(is_woken(left));
  observers.wake_waiters();  // they wait until they leave
  CHECK(is_woken(first));
}
