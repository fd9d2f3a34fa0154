// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

#include "diwarp/address.h"

namespace diwarp::llp {

/// As a socket of `family` wants it: an IPv4 address is mapped for an AF_INET6 socket.
socklen_t to_socket_address(const Address& address, sa_family_t family, sockaddr_storage& target);

/// The address that the kernel reported, unmapped; the default Address when there is none.
Address from_socket_address(const sockaddr_storage& source, socklen_t length);

/// getsockname and getpeername, unmapped; the default Address when there is none.
Address local_address_of(int fd);
Address peer_address_of(int fd);

/// A socket option of type int; -1 when it cannot be read (errno tells).
int socket_option(int fd, int level, int name);
bool set_socket_option(int fd, int level, int name, int value);

/// Where multicasts of this family leave, by its index.
bool set_multicast_interface(int fd, AddressFamily family, uint32_t interface);

}  // namespace diwarp::llp
