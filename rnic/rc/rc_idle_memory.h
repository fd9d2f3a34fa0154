// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/timer_queue.h"
#include "rnic/rc/rc_receive.h"
#include "rnic/rc/rc_stream.h"
#include "rnic/rc/rc_transmit.h"

namespace diwarp::rnic {

/// After so long without use a queue pair frees what it kept to send and receive.
inline constexpr Duration kTrimAfter = std::chrono::seconds(1);

/// Frees the memory that an RC queue pair has kept to send and receive, once it was not used for a
/// while: most queue pairs are idle. With the baton.
class RcIdleMemory {
 public:
  RcIdleMemory(TimerQueue& timers, RcReceive& receive, RcTransmit& transmit, RcStream& stream)
      : timers_(timers), receive_(receive), transmit_(transmit), stream_(stream) {}

  /// Memory may have been used, and is looked at after kTrimAfter.
  void used(Time now) {
    if (!timer_.armed() && (receive_.keeps_memory() || transmit_.keeps_memory()))
      timers_.arm(timer_, now + kTrimAfter);
  }
  /// Nothing is freed from now on: the queue pair goes.
  void stop() { timers_.cancel(timer_); }

 private:
  void trim(Time now);

  TimerQueue& timers_;
  RcReceive& receive_;
  RcTransmit& transmit_;
  RcStream& stream_;
  MemberTimer<RcIdleMemory, &RcIdleMemory::trim> timer_{*this};
};

}  // namespace diwarp::rnic
