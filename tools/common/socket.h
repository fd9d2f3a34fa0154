// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

#include "base/unique_fd.h"

namespace diwarp::tools {

// Plain sockets, close-on-exec. Each call throws Failure with a message.

/// A socket of `type` (SOCK_STREAM, SOCK_DGRAM) bound to `address`; port 0: a free one.
UniqueFd bound_socket(const Address& address, int type);

/// An unbound socket of the family that `peer` has.
UniqueFd open_socket(const Address& peer, int type);

Address local_address_of(int fd);
Address peer_address_of(int fd);
/// The address of this host that its route to `peer` begins at, without a port.
Address local_address_to(const Address& peer);

uint16_t free_udp_port(const Address& address);

/// Asks for buffers of `wanted` bytes; beyond the system's limits they are for the privileged.
void set_receive_buffer(int fd, size_t wanted);
void set_send_buffer(int fd, size_t wanted);

/// The bytes that the system gives a UDP socket that asks for a receive buffer of `wanted` bytes.
size_t granted_receive_buffer(const Address& address, size_t wanted);

/// Small messages leave at once (TCP_NODELAY).
void send_at_once(int fd);

}  // namespace diwarp::tools
