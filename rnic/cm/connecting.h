// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "llp/connector.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/cm/control.h"
#include "rnic/cm/readiness.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/cm/startup_exchange.h"
#include "rnic/context/peer_timeouts.h"

namespace diwarp::rnic {

/// How a connect ended: with a stream and the peer's reply, or with an error.
struct ConnectOutcome {
  std::error_code error = {};
  std::string message = {};
  std::unique_ptr<llp::Stream> stream = {};
  mpa::NegotiatedParameters parameters = {};
  std::vector<std::byte> private_data = {};  ///< of the reply, or of the reject
  std::vector<std::byte> leftover = {};
  PeerTimeoutChoice timeouts = {};
};

/// One connect on the control path: a stream, then MPA's request and reply (RFC 5044 section 7.1).
/// A peer that does not take revision 2 is asked once more, in revision 1, over a new connection.
/// Each handler keeps it alive.
class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  using Done = std::function<void(ConnectOutcome)>;

  /// Throws Error(invalid_argument, invalid_destination) where the options cannot be told, or the
  /// peer not be reached.
  Connecting(Control& control, const Address& local, const Address& peer,
             const ConnectOptions& options);

  // --- On the control path.

  /// `done` is called once, unless cancel() comes before.
  void begin(Done done);
  /// The same, over this stream; it is not asked twice.
  void begin_on(std::unique_ptr<llp::Stream> stream, Done done);
  void cancel();

 private:
  void arm(Done done);
  void open();
  void request();
  void on_timeout(const AsioError& error);
  void wait_until_connected();
  void on_progress(const AsioError& error);
  void on_connected(llp::ConnectResult result);
  void use(std::unique_ptr<llp::Stream> stream);
  void write();
  void on_writable(const AsioError& error);
  void read();
  void on_readable(const AsioError& error);
  void on_bytes(size_t bytes);
  void hang_up();
  void handle_reply(const mpa::ParsedStartup& reply);
  void accept(const mpa::ParsedStartup& reply, const mpa::NegotiatedParameters& parameters);
  void end_with_terminate(mpa::NegotiationFault fault, const mpa::NegotiatedParameters& parameters);
  void give_attempt_up();
  bool fall_back();
  void fail_or_retry(ConnectOutcome outcome);
  void lose();
  void refuse(const std::string& reason);
  void fail(std::error_code error, const std::string& message);
  void finish(ConnectOutcome outcome);

  Control& control_;
  const Address local_;
  const Address peer_;
  const Duration timeout_;
  const Duration retry_refused_;
  const PeerTimeoutChoice timeouts_;  // of the connection that comes of it
  mpa::MpaProposal proposal_;
  const bool falls_back_;
  bool may_fall_back_;
  bool told_fallback_ = false;
  const std::vector<std::byte> private_data_;
  StartupExchange exchange_;
  std::unique_ptr<llp::PendingConnection> pending_;  // until there is a stream
  std::unique_ptr<llp::Stream> stream_;
  Readiness readiness_;  // of either
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer refused_timer_;
  std::chrono::steady_clock::time_point refused_until_;
  Duration refused_pause_;
  std::optional<ConnectOutcome> refused_;  // the attempt before, until the next one connects
  Done done_;                              // empty once over
  unsigned attempt_ = 0;                   // handlers of an earlier one mean nothing
};

}  // namespace diwarp::rnic
