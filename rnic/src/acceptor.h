// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <set>

#include "diwarp/attributes.h"
#include "handler_memory.h"
#include "rnic/control.h"
#include "rnic/listener.h"
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
  /// Takes a request over; or leaves it as it is, and it is rejected.
  using Sink = std::function<void(IncomingRequest& request)>;

  Acceptor(Control& control, UniqueFd listening, Duration request_timeout, Sink sink);

  // --- On the control path.

  void begin() { await(); }
  /// Nothing is accepted any more, and the sink is not used again.
  void close();

 private:
  void await();
  void on_readable(const AsioError& error);
  void accept_burst();
  void within_memory(const std::function<void()>& work);
  void retry_later();
  void on_retry(const AsioError&);
  void negotiate(UniqueFd fd);
  void on_negotiated(const std::shared_ptr<Negotiation>& negotiation);
  void admit(IncomingRequest request);

  Control& control_;
  const Duration request_timeout_;
  Sink sink_;
  Tcp::acceptor socket_;
  HandlerMemory memory_;  // of the wait, for connections or to try again
  boost::asio::steady_timer retry_;
  std::set<std::shared_ptr<Negotiation>> negotiations_;
  bool awaiting_ = false;  // a connection, or the time to try again
  bool closed_ = false;
};

/// A listening descriptor on `address`, whose port may be 0. Throws Error(address_in_use) and the
/// like.
UniqueFd open_listening(const Address& address, int backlog);
/// The address with its port.
Address bound_address(int fd);

}  // namespace diwarp::rnic
