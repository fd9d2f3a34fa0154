// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "common/control.h"
#include "common/interrupt.h"
#include "common/progress_line.h"

namespace diwarp::tools {

/// Repeats `step` until it returns true or `until` has passed; false then.
template <class Step>
bool spin_until(Time until, Step&& step) {
  // Reading the clock costs about as much as a tenth of an empty poll.
  constexpr int kStepsPerClockRead = 16;
  do {
    for (int i = 0; i < kStepsPerClockRead; ++i) {
      if (step()) return true;
    }
  } while (std::chrono::steady_clock::now() < until);
  return false;
}

/// Longer than what is lost is waited for: a message sent again must find this end awake, since a
/// message that is longer than the socket's buffer does not wait in it.
inline constexpr Duration kAwake = std::chrono::milliseconds(500);

/// How every end of a run waits: repeats `step` without sleeping, as a measurement wants, and looks
/// after the peer and the user once a millisecond, so that no wait goes on for a peer that died.
/// After half a second it calls `rest`, which may sleep for the time it is given, between two
/// looks. True once either returns true; false if `deadline` passed, or if a message of the peer
/// waits in the control channel. Throws PeerGone, Interrupted.
template <class Step, class Rest>
bool spin(Control& control, Time deadline, Step&& step, Rest&& rest) {
  using std::chrono::milliseconds;
  constexpr Duration kBetweenLooks = milliseconds(1);
  constexpr Duration kRest = milliseconds(2);
  const Time start = std::chrono::steady_clock::now();
  Time now = start;
  while (!spin_until(std::min(deadline, now + kBetweenLooks), step)) {
    check_interrupted();
    ProgressLine::tick();
    control.look();
    now = std::chrono::steady_clock::now();
    if (now >= deadline || control.pending()) return false;
    if (now - start > kAwake && rest(std::min<Duration>(deadline - now, kRest))) return true;
  }
  return true;
}

}  // namespace diwarp::tools
