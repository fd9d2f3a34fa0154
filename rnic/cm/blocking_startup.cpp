// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/blocking_startup.h"

#include <boost/asio/post.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "diwarp/error.h"
#include "rnic/cm/connecting.h"
#include "rnic/cm/control.h"
#include "rnic/cm/negotiation.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

namespace {

/// The result that a thread awaits from the control path.
template <class T>
class ControlResult {
 public:
  void set(T value) {
    {
      const std::lock_guard lock(mutex_);
      value_ = std::move(value);
    }
    blocking_wait_.wake();
  }

  T wait(Engine& engine) {
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (value_) return std::move(*value_);
      }
      block(engine, blocking_wait_, kLongestWait);
    }
  }

 private:
  std::mutex mutex_;  // guards value_
  std::optional<T> value_;
  BlockingWait blocking_wait_;
};

NegotiatedConnection to_connection(ConnectOutcome outcome, const Address& peer) {
  if (outcome.error == make_error_code(Errc::rejected))
    throw RejectedError(outcome.message, std::move(outcome.private_data));
  if (outcome.error) throw Error(outcome.error, outcome.message);
  NegotiatedConnection connection;
  connection.stream = unbroken(std::move(outcome.stream));
  if (!connection.stream)
    throw Error(
        make_error_code(Errc::connection_lost),
        peer.to_string() +
            " accepted the connection and broke it at once: the program there may tell why");
  connection.parameters = outcome.parameters;
  connection.timeouts = outcome.timeouts;
  connection.leftover = std::move(outcome.leftover);
  connection.private_data = std::move(outcome.private_data);
  return connection;
}

}  // namespace

void check_peer(const Address& local, const Address& peer) {
  const bool dual_stack = local.is_any() && local.family() == AddressFamily::ipv6;
  const bool reachable = local.family() == peer.family() || dual_stack;
  if (peer.port() != 0 && !peer.is_any() && reachable) return;
  throw Error(make_error_code(Errc::invalid_destination),
              "A device on " + local.host() + " cannot connect to " + peer.to_string() +
                  ": give an address of the same family, and a port");
}

NegotiatedConnection open_connection(Control& control, const Address& peer,
                                     const ConnectOptions& options) {
  const auto connecting =
      std::make_shared<Connecting>(control, control.device().address(), peer, options);
  check_peer(control.device().address(), peer);
  const auto outcome = std::make_shared<ControlResult<ConnectOutcome>>();
  boost::asio::post(control.context(), [connecting, outcome] {
    connecting->begin([outcome](ConnectOutcome result) { outcome->set(std::move(result)); });
  });
  return to_connection(outcome->wait(control.device().engine()), peer);
}

NegotiatedConnection initiate_on(Control& control, int descriptor, const ConnectOptions& options) {
  std::unique_ptr<llp::Stream> stream = control.connector().adopt(descriptor);
  const Address peer = stream->peer_address();
  const auto connecting =
      std::make_shared<Connecting>(control, stream->local_address(), peer, options);
  const auto outcome = std::make_shared<ControlResult<ConnectOutcome>>();
  boost::asio::post(control.context(), [connecting, outcome, own = std::move(stream)]() mutable {
    connecting->begin_on(std::move(own),
                         [outcome](ConnectOutcome result) { outcome->set(std::move(result)); });
  });
  return to_connection(outcome->wait(control.device().engine()), peer);
}

NegotiatedConnection respond_on(Control& control, int descriptor, const AcceptOptions& options,
                                Duration timeout) {
  check_options(options, {});
  std::unique_ptr<llp::Stream> stream = control.connector().adopt(descriptor);
  const Address peer = stream->peer_address();
  const auto came = std::make_shared<ControlResult<Negotiated>>();
  boost::asio::post(control.context(),
                    [&control, came, timeout, own = std::move(stream)]() mutable {
                      std::make_shared<Negotiation>(control, std::move(own), timeout)
                          ->begin([came](const std::shared_ptr<Negotiation>& negotiation) {
                            came->set(std::move(negotiation->outcome()));
                          });
                    });
  Negotiated negotiated = came->wait(control.device().engine());
  if (!negotiated.request)
    throw Error(negotiated.error,
                "On the connection to " + peer.to_string() + ", " + negotiated.message);
  try {
    check_options(options, negotiated.request->frame);
  } catch (const Error&) {
    reject_connection(control, std::move(*negotiated.request), {});
    throw;
  }
  return accept_connection(std::move(*negotiated.request), options);
}

}  // namespace diwarp::rnic
