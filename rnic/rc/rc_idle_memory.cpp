// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_idle_memory.h"

namespace diwarp::rnic {

void RcIdleMemory::trim(Time now) {
  bool more = receive_.trim();
  more = transmit_.trim() || more;
  more = (stream_ && stream_->trim()) || more;
  if (more) timers_.arm(timer_, now + kTrimAfter);
}

}  // namespace diwarp::rnic
