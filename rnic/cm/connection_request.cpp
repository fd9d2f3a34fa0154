// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/connection_request.h"

#include <utility>

#include "diwarp/error.h"
#include "provider/own.h"
#include "rnic/cm/control.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/rc/rc_queue_pair.h"
#include "rnic/rc/rc_state.h"

namespace diwarp::rnic {

RequestedDepths depths_of(const mpa::StartupFrame& request) {
  if (!request.enhanced) return {};
  RequestedDepths depths;
  // guard(rows:depths-told): without depths.ord = request.enhanced->ird;
  if (request.enhanced->ird != mpa::kNotNegotiated) depths.ord = request.enhanced->ird;
  if (request.enhanced->ord != mpa::kNotNegotiated) depths.ird = request.enhanced->ord;
  return depths;
}

RcQueuePair& taker_of(provider::QueuePair& queue_pair, const Control& control) {
  // guard(connect): condition => false
  // guard(connection-manager): condition => false
  if (queue_pair.rc() == nullptr)
    throw Error(make_error_code(Errc::unsupported_operation),
                "Only a queue pair of type rc can have a connection");
  auto& taker = provider::own<RcQueuePair>(queue_pair, "queue pair");
  // guard(connect): condition => false
  // guard(connection-manager): condition => false
  if (taker.device().get() != &control.device())
    throw Error(make_error_code(Errc::invalid_argument),
                "The queue pair belongs to another device than the listener, or the connection "
                "manager id: make both of one Device");
  return taker;
}

ConnectionRequest::ConnectionRequest(std::shared_ptr<Control> control, IncomingRequest request)
    : control_(std::move(control)),
      peer_(request.stream->peer_address()),
      depths_(depths_of(request.frame)),
      request_(std::move(request)) {}

ConnectionRequest::~ConnectionRequest() {
  if (request_.stream) reject_connection(*control_, std::move(request_), {});
}

void ConnectionRequest::require_unanswered() const {
  if (request_.stream) return;  // guard(connect): => return;
  throw Error(make_error_code(Errc::invalid_state),
              "This connection request was answered already; each takes one answer");
}

void ConnectionRequest::accept(provider::QueuePair& queue_pair, const AcceptOptions& options) {
  require_unanswered();
  check_options(options, request_.frame);
  RcQueuePair& taker = taker_of(queue_pair, *control_);
  require_init(taker.state());
  taker.start(accept_connection(take_request(), options));
}

void ConnectionRequest::reject(std::span<const std::byte> private_data) {
  require_unanswered();
  check_private_data(private_data, request_.frame.enhanced.has_value());
  reject_connection(*control_, take_request(), private_data);
}

/// Leaves what the peer asked for to be read.
IncomingRequest ConnectionRequest::take_request() {
  IncomingRequest taken;
  taken.stream = std::move(request_.stream);
  taken.frame = request_.frame;
  taken.leftover = std::move(request_.leftover);
  return taken;
}

}  // namespace diwarp::rnic
