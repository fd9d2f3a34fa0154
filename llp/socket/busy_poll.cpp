// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/busy_poll.h"

#include <algorithm>
#include <climits>

#include "llp/socket/socket_address.h"

namespace diwarp::llp {

bool set_busy_poll(int socket, Duration time) {
  using Microseconds = std::chrono::microseconds;
  if (time <= Duration::zero()) return true;
  const auto wanted =
      std::chrono::ceil<Microseconds>(std::min<Duration>(time, Microseconds(INT_MAX)));
  return set_socket_option(socket, SOL_SOCKET, SO_BUSY_POLL, static_cast<int>(wanted.count()));
}

}  // namespace diwarp::llp
