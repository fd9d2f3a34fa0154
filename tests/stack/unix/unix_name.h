// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "base/unique_fd.h"
#include "diwarp/address.h"

/// Addresses of hosts and ports as names of Unix-domain sockets. The names are abstract: they lie
/// in no folder and are gone with their socket.
namespace diwarp::test {

struct UnixName {
  sockaddr_un name{};
  socklen_t length = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&name); }
};

/// Datagrams and streams have ports of their own.
UnixName unix_name(int type, const Address& address);
/// The default Address where the socket has no such name.
Address address_of(const UnixName& name);

Address unix_local_address(int fd);
Address unix_peer_address(int fd);

/// Non-blocking and closed on exec; empty, and errno tells, where there is none to be had.
UniqueFd open_unix(int type);
/// Port 0 takes a free one. Returns the address with its port, or one with port 0, and errno tells.
Address bind_unix(int fd, int type, const Address& address);

}  // namespace diwarp::test
