// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/listener.h"

#include <boost/asio/post.hpp>
#include <deque>
#include <mutex>
#include <utility>

#include "diwarp/error.h"
#include "rnic/cm/acceptor.h"
#include "rnic/cm/negotiation.h"
#include "rnic/cm/request_shares.h"
#include "rnic/cm/startup_checks.h"
#include "rnic/engine/blocking_call.h"
#include "rnic/rc/rc_queue_pair.h"

namespace diwarp::rnic {

// --- The listener.

/// Those that nobody fetched yet.
struct Listener::Requests {
  explicit Requests(size_t limit) : most(limit) {}

  /// Leaves in `request` what is to be rejected: itself, or what gives way to it.
  void push(IncomingRequest& request) {
    {
      const std::lock_guard lock(mutex);
      // guard(connect)
      // guard(rows:requests-bounded)
      if (waiting.size() >= most) return exchange_for(request);
      waiting.push_back(std::move(request));
    }
    blocking_wait.wake();
  }

  IncomingRequest take() {
    const std::lock_guard lock(mutex);
    IncomingRequest request = std::move(waiting.front());
    waiting.pop_front();
    return request;
  }

  void exchange_for(IncomingRequest& request) {
    IncomingRequest* const gives_way =
        shares.giving_way(waiting, request, [](IncomingRequest& one) { return &one; });
    if (gives_way != nullptr) std::swap(*gives_way, request);
  }

  const size_t most;
  const RequestShares shares;
  std::mutex mutex;  // guards waiting
  std::deque<IncomingRequest> waiting;
  BlockingWait blocking_wait;  // woken once for each that take() then has
};

Listener::Listener(std::shared_ptr<Control> control, uint16_t port, const ListenOptions& options)
    : control_(std::move(control)), requests_(std::make_unique<Requests>(options.max_requests)) {
  auto listener = open_listener(*control_, control_->device().address().with_port(port), options);
  address_ = listener->local_address();
  acceptor_ = std::make_shared<Acceptor>(
      *control_, std::move(listener), options,
      [requests = requests_.get()](IncomingRequest& request) { requests->push(request); });
  boost::asio::post(control_->context(), [acceptor = acceptor_] { acceptor->begin(); });
}

Listener::~Listener() {
  control_->exclusively([this] { acceptor_->close(); });
  for (IncomingRequest& request : requests_->waiting)
    reject_connection(*control_, std::move(request), {});
}

std::shared_ptr<ConnectionRequest> Listener::get_request(Duration timeout) {
  Engine& engine = control_->device().engine();
  const Time deadline = deadline_after(engine.clock().now(), timeout);
  for (;;) {
    const Time now = engine.clock().now();
    // A request and its wake belong together: the thread that used the wake up takes the request.
    if (block(engine, requests_->blocking_wait, deadline - now))
      return std::make_shared<ConnectionRequest>(control_, requests_->take());
    if (now >= deadline) return nullptr;
  }
}

// --- A request.

RequestedDepths depths_of(const mpa::StartupFrame& request) {
  if (!request.enhanced) return {};
  RequestedDepths depths;
  // guard(rows:depths-told): without depths.ord = request.enhanced->ird;
  if (request.enhanced->ird != mpa::kNotNegotiated) depths.ord = request.enhanced->ird;
  if (request.enhanced->ord != mpa::kNotNegotiated) depths.ird = request.enhanced->ord;
  return depths;
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

void ConnectionRequest::accept(QueuePair& queue_pair, const AcceptOptions& options) {
  require_unanswered();
  check_options(options, request_.frame);
  if (queue_pair.type() != QpType::rc)  // guard(connect): condition => false
    throw Error(make_error_code(Errc::unsupported_operation),
                "Only a queue pair of type rc can take a connection");
  if (queue_pair.device().get() != &control_->device())  // guard(connect): condition => false
    throw Error(make_error_code(Errc::invalid_argument),
                "The queue pair belongs to another device than the listener");
  auto& taker = static_cast<RcQueuePair&>(queue_pair);
  taker.require_init();
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
