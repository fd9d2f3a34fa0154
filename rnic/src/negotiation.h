// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>

#include "rnic/control.h"
#include "rnic/listener.h"
#include "tcp_socket.h"

namespace diwarp::rnic {

/// Reads one MPA request from an accepted connection, on the control path. A peer that sends
/// something else, breaks off, or takes too long is counted, and its connection closed.
class Negotiation : public std::enable_shared_from_this<Negotiation> {
 public:
  using Done = std::function<void(const std::shared_ptr<Negotiation>&)>;

  Negotiation(Control& control, Tcp::socket socket, Duration timeout);

  /// `done` is called once, unless cancel() comes before.
  void begin(Done done);
  void cancel();

  /// What came of it; once done.
  std::optional<IncomingRequest>& request() { return request_; }

 private:
  void read();
  void on_read(const AsioError& error, size_t bytes);
  void on_timeout(const AsioError& error);
  void judge(const mpa::ParsedStartup& parsed);
  void fail(Counter reason);
  void finish();

  Control& control_;
  Tcp::socket socket_;
  const Duration timeout_;
  boost::asio::steady_timer timer_;
  Done done_;                          // empty once over
  std::array<std::byte, 1024> input_;  // has room for the longest request
  size_t received_ = 0;
  std::optional<IncomingRequest> request_;
};

/// Sends a reply on a connection that nothing was sent on before, so that the socket takes it at
/// once. False if the connection is gone.
bool send_reply(llp::Stream& stream, const mpa::StartupFrame& reply);

/// Answers no and ends the connection, such that the answer is not lost.
void reject_connection(Control& control, std::unique_ptr<llp::TcpStream> stream,
                       std::span<const std::byte> private_data);

}  // namespace diwarp::rnic
