// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "tcp_socket.h"

namespace diwarp::rnic {

/// Reads and forgets what a peer still sends until it closes its side, within bounds of time and
/// bytes. On the control path; its handlers keep it alive.
class Farewell : public std::enable_shared_from_this<Farewell> {
 public:
  /// `alive` counts those that live.
  Farewell(boost::asio::io_context& context, UniqueFd connection, size_t& alive);
  ~Farewell() { --alive_; }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

  void begin();

 private:
  void read();
  void close();

  size_t& alive_;
  Tcp::socket socket_;
  boost::asio::steady_timer timer_;
  size_t received_ = 0;
  std::array<std::byte, 4096> sink_;
};

}  // namespace diwarp::rnic
