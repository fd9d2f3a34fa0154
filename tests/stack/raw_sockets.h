// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/stream.h"

namespace diwarp::test {

/// How a stream ended; `none`: it goes on.
enum class Ending : uint8_t { none, in_order, reset };

/// The system calls of a test's own peers, which have plain sockets of the kind that the program's
/// devices have. The cases are compiled once, and the program links one definition of these: for
/// TCP and UDP raw_ip_sockets.cpp, for another backend that of its folder. Any thread; none
/// asserts.
namespace raw {

enum class Kind : uint8_t { stream, datagrams };

/// A blocking socket that is closed on exec; empty, and errno tells, where there is none to be had.
UniqueFd open(Kind kind, AddressFamily family = AddressFamily::ipv4);

/// These three return false, and errno tells, where the system refuses. Port 0 takes a free one.
bool bind(int fd, const Address& local);
/// A stream's, from a loopback address unless it is bound.
bool connect(int fd, const Address& to);
bool send_to(int fd, const Address& to, std::span<const std::byte> datagram);

/// Of a socket that is bound or connected; throws Error, or std::system_error, of another.
Address address_of(int fd);

struct Received {
  size_t bytes = 0;
  Ending ending = Ending::none;  // after these bytes
};
/// Some bytes of a stream, at least one unless it has ended.
Received receive(int fd, std::span<std::byte> buffer);

/// Closes a connected stream at once, and the peer is told that it did not end in order.
void reset(UniqueFd stream);

/// What the program's devices make of a connected descriptor.
std::unique_ptr<llp::Stream> adopt(UniqueFd stream);

}  // namespace raw

}  // namespace diwarp::test
