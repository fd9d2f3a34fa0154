// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "diwarp/error.h"
#include "rnic/cm/connection_request.h"
#include "rnic/cm/control.h"
#include "rnic/cm/readiness.h"

namespace diwarp::rnic {

/// The outcome of a negotiation: a request that can be answered, or an error.
struct Negotiated {
  std::optional<IncomingRequest> request = {};
  std::error_code error = {};
  std::string message = {};
};

/// Reads one MPA request from a connection, on the control path. A peer that sends something else,
/// breaks off, or takes too long is counted, and its connection closed; one that wants what there
/// is not is rejected.
class Negotiation : public std::enable_shared_from_this<Negotiation> {
 public:
  using Done = std::function<void(const std::shared_ptr<Negotiation>&)>;

  Negotiation(Control& control, std::unique_ptr<llp::Stream> stream, Duration timeout);

  /// `done` is called once, unless cancel() comes before.
  void begin(Done done);
  void cancel();

  /// Once done.
  Negotiated& outcome() { return outcome_; }

 private:
  void read();
  void on_readable(const AsioError& error);
  void on_bytes(size_t bytes);
  void on_timeout(const AsioError& error);
  void handle_request(const mpa::ParsedStartup& parsed);
  void fail(Counter counter, Errc error, const char* message);
  void finish();

  Control& control_;
  std::unique_ptr<llp::Stream> stream_;  // null once over
  const Address peer_;
  Readiness readiness_;
  const Duration timeout_;
  boost::asio::steady_timer timer_;
  Done done_;                          // empty once over
  std::array<std::byte, 1024> input_;  // has room for the longest request
  size_t received_ = 0;
  Negotiated outcome_;
};

}  // namespace diwarp::rnic
