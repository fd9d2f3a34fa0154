// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/socket/socket_address.h"

/// How the sockets of UDP links are opened and bound.
namespace diwarp::llp {

struct UdpOptions;

/// Lets other sockets be bound to the port of one that is bound, while this lives. `option`:
/// SO_REUSEADDR lets sockets of anybody that have it, SO_REUSEPORT those of the same user.
class SharedPort {
 public:
  SharedPort(int fd, int option)
      : fd_(fd), option_(option), before_(socket_option(fd, SOL_SOCKET, option)) {
    set_socket_option(fd_, SOL_SOCKET, option_, 1);
  }
  ~SharedPort() { set_socket_option(fd_, SOL_SOCKET, option_, before_); }  // guard(shared-port)
  SharedPort(const SharedPort&) = delete;
  SharedPort& operator=(const SharedPort&) = delete;

 private:
  const int fd_;
  const int option_;
  const int before_;
};

/// SO_RCVBUF or SO_SNDBUF, by their forced kind where that is allowed; 0 bytes: stays as it is.
/// False if the system gives less.
bool set_buffer(int fd, int forced, int plain, size_t bytes);

/// A UDP socket for links at `local`, not bound yet. "::" will serve IPv4 as well. Throws Error.
UniqueFd open_udp_socket(const Address& local);

/// Throws Error: Errc::address_in_use, or the system's errno, with a message.
void bind_udp_socket(int fd, const Address& local);

/// Both at once. With `share`, where the port is not 0, it may be one to which other sockets of
/// this user are bound that have SO_REUSEPORT.
UniqueFd bound_udp_socket(const Address& local, bool share = false);

/// The descriptor, taken over; throws as UdpLink::adopt() does.
UniqueFd adoptable_udp_socket(int bound_descriptor, const UdpOptions& options);

}  // namespace diwarp::llp
