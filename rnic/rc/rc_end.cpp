// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_end.h"

#include <cerrno>

namespace diwarp::rnic {

/// When TCP gives a peer up, the kernel reports the last ICMP error instead, if there was one.
RcEnd end_of_stream(int error) {
  const bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  // guard(silent-peers): => static_cast<void>(silent); return RcEnd::lost;
  return silent ? RcEnd::timed_out : RcEnd::lost;
}

}  // namespace diwarp::rnic
