// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/listener.h"

#include <boost/asio/post.hpp>
#include <deque>
#include <mutex>
#include <utility>

#include "rnic/cm/acceptor.h"
#include "rnic/cm/connection_request.h"
#include "rnic/cm/control.h"
#include "rnic/cm/request_shares.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

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

std::shared_ptr<provider::ConnectionRequest> Listener::get_request(Duration timeout) {
  return take_woken(control_->device().engine(), requests_->blocking_wait, timeout, [this] {
    return std::make_shared<ConnectionRequest>(control_, requests_->take());
  });
}

}  // namespace diwarp::rnic
