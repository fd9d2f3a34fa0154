// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "diwarp/attributes.h"
#include "rnic/control.h"
#include "rnic/listener.h"
#include "rnic/sleeper.h"
#include "tcp_socket.h"

namespace diwarp::rnic {

class Negotiation;

/// Connections of one listener whose MPA request is awaited at the same time. While there are so
/// many, the others wait in the kernel's backlog.
inline constexpr size_t kMaxNegotiations = 256;
/// Connections taken from the kernel in a row.
inline constexpr size_t kAcceptBurst = 16;
/// When descriptors have run out, accepting is tried again so much later.
inline constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

/// The accept loop of a listener, on the control path. Its handlers keep it alive; it ends with
/// close(), which the listener owes it.
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(Control& control, UniqueFd listening, const ListenOptions& options);

  // --- Any thread.

  /// Woken once for each request that take() then has.
  Sleeper& sleeper() { return sleeper_; }
  IncomingRequest take();

  // --- On the control path.

  void begin() { await(); }
  /// Nothing is accepted any more. Returns the requests that nobody took.
  std::deque<IncomingRequest> close();

 private:
  void await();
  void on_readable(const AsioError& error);
  void accept_burst();
  void retry_later();
  void negotiate(UniqueFd fd);
  void on_negotiated(const std::shared_ptr<Negotiation>& negotiation);
  void admit(IncomingRequest request);
  bool queue(IncomingRequest& request);

  Control& control_;
  const Duration request_timeout_;
  const size_t max_requests_;
  Tcp::acceptor socket_;
  boost::asio::steady_timer retry_;
  std::set<std::shared_ptr<Negotiation>> negotiations_;
  bool awaiting_ = false;  // a connection, or the time to try again
  bool closed_ = false;

  std::mutex mutex_;  // guards requests_
  std::deque<IncomingRequest> requests_;
  Sleeper sleeper_;
};

}  // namespace diwarp::rnic
