// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

#include <cstdint>

#include "compare/captured.h"

namespace diwarp::tools {

/// Ports at which programs that are started here are to listen.

/// One at which nobody listens now.
uint16_t free_tcp_port(const Address& address);

/// Until a socket of this host listens at the port. False where the program ends before, or at the
/// deadline. Throws Interrupted.
bool wait_until_listened_at(uint16_t port, Captured& program, Time deadline);

}  // namespace diwarp::tools
