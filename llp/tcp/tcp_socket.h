// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "diwarp/address.h"

namespace diwarp::llp {

/// Non-blocking. Empty, and errno tells, where there is none to be had.
UniqueFd open_tcp_socket(AddressFamily family);

/// Closes it out of order: the peer sees a reset, and its port is free at once.
void reset_connection(UniqueFd socket);

}  // namespace diwarp::llp
