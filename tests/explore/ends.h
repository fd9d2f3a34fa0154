// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>

#include "base/clock.h"
#include "end.h"
#include "ledger.h"
#include "scenario.h"
#include "testbed.h"
#include "trace.h"

namespace diwarp::explore {

/// Everything has ended after so long, or never will: several times each time-out.
inline constexpr Duration kPatience = std::chrono::seconds(40);
inline constexpr Duration kLongestStep = std::chrono::milliseconds(250);

/// The two ends of a run, and what an application does with them.
class Ends {
 public:
  Ends(Testbed& bed, const Scenario& scenario, Ledger& ledger, const Trace& trace);

  End& operator[](size_t side) { return ends_[side]; }
  /// A queue pair is in the error state.
  bool has_failed() { return ends_[0].has_failed() || ends_[1].has_failed(); }
  /// Requests of both outside the scenario that are not over.
  size_t pending() const { return ends_[0].pending() + ends_[1].pending(); }

  /// Steps the devices until nothing happens any more, and sees what they report.
  void settle();
  /// Lets time pass until `done`; false where that takes too long.
  template <class Done>
  bool wait_until(Done&& done);

  void post(size_t side, size_t operation);
  void post_receives(size_t side);
  size_t left_to_post(size_t side) const { return to_post_[side]; }
  size_t next_operation(size_t side) const {
    return scenario_.operations[side].size() - to_post_[side];
  }
  bool has_receives(size_t side) const { return has_receives_[side]; }
  bool nothing_put_off() const;
  void perform(const Event& event);

 private:
  void apply(const Event& event);
  void restart(size_t side, EventKind kind);
  void recover(size_t side);

  Testbed& bed_;
  const Scenario& scenario_;
  Ledger& ledger_;
  const Trace& trace_;
  std::array<End, kSides> ends_;
  std::array<size_t, kSides> to_post_{};
  std::array<bool, kSides> has_receives_{};
};

template <class Done>
bool Ends::wait_until(Done&& done) {
  Duration step = std::chrono::milliseconds(1);
  for (const Time end = bed_.clock.now() + kPatience; bed_.clock.now() < end;) {
    settle();
    if (done()) return true;
    bed_.clock.advance(step);
    step = std::min<Duration>(step * 2, kLongestStep);
  }
  return false;
}

}  // namespace diwarp::explore
