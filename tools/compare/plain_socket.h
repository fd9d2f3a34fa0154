// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/unique_fd.h"
#include "compare/lane.h"

namespace diwarp::tools {

[[noreturn]] void fail_socket(const char* what);

/// Whether a call that never waits found nothing to do.
bool would_block(ssize_t result);

/// A UDP socket of each end, and where the other's is.
struct UdpPair {
  UniqueFd fd;
  Address peer;
};

/// With the buffers of a datagram queue pair's socket.
UdpPair make_udp_pair(const Place& place, bool connected);

/// A TCP connection between the ends, with TCP_NODELAY.
UniqueFd make_tcp_connection(const Place& place);

}  // namespace diwarp::tools
