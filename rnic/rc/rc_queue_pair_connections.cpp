// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "rnic/context/connection_control.h"
#include "rnic/rc/rc_queue_pair.h"

/// How an RC queue pair gets and observes its connections.
namespace diwarp::rnic {

namespace {

/// The peer's private data go to the caller.
std::vector<std::byte> take_over(RcQueuePair& queue_pair, NegotiatedConnection connection) {
  std::vector<std::byte> private_data = std::move(connection.private_data);
  queue_pair.start(std::move(connection));
  return private_data;
}

}  // namespace

std::vector<std::byte> RcQueuePair::connect(const Address& peer, const ConnectOptions& options) {
  require_init();
  return take_over(*this, device()->connections().connect(peer, options));
}

std::vector<std::byte> RcQueuePair::connect_on(int descriptor, const ConnectOptions& options) {
  require_init();
  return take_over(*this, device()->connections().connect_on(descriptor, options));
}

std::vector<std::byte> RcQueuePair::accept_on(int descriptor, const AcceptOptions& options,
                                              Duration timeout) {
  require_init();
  return take_over(*this, device()->connections().accept_on(descriptor, options, timeout));
}

void RcQueuePair::observe(std::shared_ptr<ConnectionObserver> observer) {
  const auto before = std::exchange(observer_, std::move(observer));
  if (before) before->on_detached();
}

void RcQueuePair::give_up_closing() {
  if (state() == QpState::closing) end(RcEnd::lost);
}

void RcQueuePair::abandon() {
  if (connected()) enter_error();
}

}  // namespace diwarp::rnic
