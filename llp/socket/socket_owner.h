// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>

#include "diwarp/address.h"

namespace diwarp::llp {

/// The user who made the UDP socket of this network namespace that gets datagrams from `peer` to
/// `local`, as the kernel tells (sock_diag(7)). Nothing where there is none, or the kernel does not
/// tell.
std::optional<uid_t> owner_of_udp_socket(const Address& local, const Address& peer);
/// Whether the kernel tells it at all here. May have it load a module.
bool tells_owners();
/// The same for the TCP socket at `local` that is connected to `peer`.
std::optional<uid_t> owner_of_tcp_socket(const Address& local, const Address& peer);

}  // namespace diwarp::llp
