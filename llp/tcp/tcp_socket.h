// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "diwarp/address.h"

namespace diwarp::llp {

/// Non-blocking. Empty, and errno tells, where there is none to be had.
UniqueFd open_tcp_socket(AddressFamily family);

}  // namespace diwarp::llp
