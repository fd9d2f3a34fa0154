// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "diwarp/connect_options.h"
#include "llp/connector.h"
#include "rnic/cm/connection_request.h"
#include "rnic/cm/control.h"
#include "rnic/cm/handler_memory.h"
#include "rnic/cm/readiness.h"
#include "rnic/cm/startups.h"

namespace diwarp::rnic {

class Negotiation;

/// Connections accepted in a row.
inline constexpr size_t kAcceptBurst = 16;
/// When descriptors have run out, the reserve too, accepting is tried again so much later.
inline constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);
/// While connections are refused for want of descriptors, the log and the event queues are told so
/// often.
inline constexpr Duration kRefusalNotice = std::chrono::seconds(10);

/// The accept loop of a listener, on the control path. Its handlers keep it alive; it ends when
/// the listener calls close().
class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  /// Takes a request over; or leaves it as it is, and it is rejected.
  using Sink = std::function<void(IncomingRequest& request)>;

  Acceptor(Control& control, std::unique_ptr<llp::StreamListener> listener,
           const ListenOptions& options, Sink sink);

  // --- On the control path.

  void begin() { wait_for_connection(); }
  /// Nothing is accepted any more, and the sink is not used again.
  void close();

 private:
  void wait_for_connection();
  void on_readable(const AsioError& error);
  void accept_burst();
  void within_memory(const std::function<void()>& work);
  void retry_later();
  bool goes_on_after(llp::AcceptStatus status);
  bool evict(const std::shared_ptr<Negotiation>& negotiation);
  bool make_room();
  void tell_refusal();
  void on_retry(const AsioError&);
  void negotiate(std::unique_ptr<llp::Stream> stream);
  void on_negotiated(const std::shared_ptr<Negotiation>& negotiation);
  void admit(IncomingRequest request);

  Control& control_;
  const Duration request_timeout_;
  Sink sink_;
  std::unique_ptr<llp::StreamListener> listener_;  // null once closed
  Readiness readiness_;
  HandlerMemory memory_;  // of the wait, for connections or to try again
  boost::asio::steady_timer retry_;
  Startups<Negotiation> negotiations_;
  std::chrono::steady_clock::time_point next_notice_{};  // of refusals
  bool waiting_ = false;                                 // a connection, or the time to try again
  bool closed_ = false;
};

/// Where the device's peers connect to `address`, whose port may be 0. Throws Error(address_in_use)
/// and the like, and Error(invalid_argument) for options that no listener can have.
std::unique_ptr<llp::StreamListener> open_listener(Control& control, const Address& address,
                                                   const ListenOptions& options);

}  // namespace diwarp::rnic
