// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/tcp/tcp.h"

/// TCP sockets of the control path. They are made here and not by Asio, so that each is closed on
/// exec from its first moment.
namespace diwarp::rnic {

using Tcp = boost::asio::ip::tcp;
using AsioError = boost::system::error_code;

inline std::error_code system_error(int error) { return {error, std::system_category()}; }

Tcp::endpoint to_endpoint(const Address& address);
Tcp protocol_of(int fd);

/// Non-blocking. Empty, and errno tells, where there is none to be had.
UniqueFd open_tcp(AddressFamily family);

/// A descriptor as Asio has it: Tcp::socket or Tcp::acceptor.
template <class Socket = Tcp::socket>
Socket to_asio(boost::asio::io_context& context, UniqueFd fd) {
  Socket socket(context);
  AsioError error;
  socket.assign(protocol_of(fd.get()), fd.get(), error);
  if (!error) fd.release();
  return socket;
}

/// Gives the descriptor back.
UniqueFd release(Tcp::socket& socket);

/// A stream of a connected descriptor; null where the connection is gone already.
std::unique_ptr<llp::TcpStream> adopt_stream(UniqueFd fd);

/// Throws Error(invalid_argument) where it is longer than MPA can carry, with enhanced data or
/// without.
void check_private_data(std::span<const std::byte> data, bool enhanced);

/// Throws Error(invalid_argument) where a depth is more than MPA can tell (RFC 6581 section 9.1).
void check_depths(uint16_t ord, uint16_t ird);

/// A timeout that timers can have. Negative ones, which mean for ever, become a year.
Duration bounded_timeout(Duration timeout);

}  // namespace diwarp::rnic
