// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "diwarp/address.h"

namespace diwarp::llp {

/// A UDP socket for links at `local`, not bound yet. "::" will serve IPv4 as well. Throws Error.
UniqueFd open_udp_socket(const Address& local);

/// Throws Error: Errc::address_in_use, or the system's errno, with a sentence.
void bind_udp_socket(int fd, const Address& local);

}  // namespace diwarp::llp
