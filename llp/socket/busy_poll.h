// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

namespace diwarp::llp {

/// Lets a receive that finds nothing look into the device's queue itself before it gives up
/// (SO_BUSY_POLL; rounded to microseconds): for `time`, or once where it does not wait, as the
/// links' and streams' receives do not. Zero leaves the system's choice (net.core.busy_read).
/// False where the system refuses: it allows more than its own choice only with CAP_NET_ADMIN.
bool set_busy_poll(int socket, Duration time);

}  // namespace diwarp::llp
