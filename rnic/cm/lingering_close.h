// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <memory>
#include <vector>

#include "llp/stream.h"
#include "rnic/cm/readiness.h"

namespace diwarp::rnic {

/// Sends the final bytes of a connection, ends its sending side, then reads and forgets what the
/// peer still sends until it closes its own, so that nothing unread resets the connection and takes
/// the final bytes with it. Within bounds of time and bytes. On the control path; its handlers keep
/// it alive.
class LingeringClose : public std::enable_shared_from_this<LingeringClose> {
 public:
  /// `alive` counts those that live.
  LingeringClose(boost::asio::io_context& context, std::unique_ptr<llp::Stream> stream,
                 std::vector<std::byte> final_bytes, size_t& alive);
  ~LingeringClose() { --alive_; }
  LingeringClose(const LingeringClose&) = delete;
  LingeringClose& operator=(const LingeringClose&) = delete;

  void begin();

 private:
  void write();
  void read();
  void on_readable();
  void close();

  size_t& alive_;
  std::unique_ptr<llp::Stream> stream_;  // null: closed
  Readiness readiness_;
  boost::asio::steady_timer timer_;
  const std::vector<std::byte> final_bytes_;
  size_t sent_ = 0;
  size_t received_ = 0;
  std::array<std::byte, 4096> sink_;
};

}  // namespace diwarp::rnic
