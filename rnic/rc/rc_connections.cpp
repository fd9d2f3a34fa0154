// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_connections.h"

#include <utility>

#include "rnic/context/connection_control.h"
#include "rnic/engine/blocking_call.h"
#include "rnic/rc/rc_queue_pair.h"
#include "rnic/rc/rc_state.h"

namespace diwarp::rnic {

namespace {

/// The peer's private data go to the caller.
std::vector<std::byte> take_over(RcQueuePair& queue_pair, NegotiatedConnection connection) {
  std::vector<std::byte> private_data = std::move(connection.private_data);
  queue_pair.start(std::move(connection));
  return private_data;
}

/// True where the connection has ended, or there is none; false where it has not at `deadline`.
bool wait_ended(RcQueuePair& queue_pair, Time deadline) {
  if (!is_connected(queue_pair.state())) return true;
  Engine& engine = queue_pair.device()->engine();
  RcObservers::Waiter waiter;
  engine.exclusively([&] { queue_pair.observers().add(waiter); });
  for (Time now = engine.clock().now(); is_connected(queue_pair.state()) && now < deadline;
       now = engine.clock().now())
    block(engine, waiter.blocking_wait, deadline - now);
  engine.exclusively([&] { waiter.unlink(); });
  return !is_connected(queue_pair.state());
}

}  // namespace

std::vector<std::byte> connect(RcQueuePair& queue_pair, const Address& peer,
                               const ConnectOptions& options) {
  require_init(queue_pair.state());
  return take_over(queue_pair, queue_pair.device()->connections().connect(peer, options));
}

std::vector<std::byte> connect_on(RcQueuePair& queue_pair, int descriptor,
                                  const ConnectOptions& options) {
  require_init(queue_pair.state());
  return take_over(queue_pair, queue_pair.device()->connections().connect_on(descriptor, options));
}

std::vector<std::byte> accept_on(RcQueuePair& queue_pair, int descriptor,
                                 const AcceptOptions& options, Duration timeout) {
  require_init(queue_pair.state());
  return take_over(queue_pair,
                   queue_pair.device()->connections().accept_on(descriptor, options, timeout));
}

void adopt(RcQueuePair& queue_pair, const StreamAttributes& stream) {
  require_init(queue_pair.state());
  DeviceContext& device = *queue_pair.device();
  device.connections();  // may not be begun with the baton held
  NegotiatedConnection connection;
  connection.timeouts = {stream.keep_alive, stream.user_timeout};
  check_timeouts(connection.timeouts);
  connection.stream = device.connector().adopt(stream.descriptor);
  connection.initiator = stream.initiator;
  connection.parameters = {.crc = stream.crc,
                           .send_markers = stream.send_markers,
                           .receive_markers = stream.receive_markers,
                           .ord = stream.ord,
                           .ird = stream.ird,
                           .ready = stream.ready};
  queue_pair.start(std::move(connection), QpState::rtr);
}

void disconnect(RcQueuePair& queue_pair, const DisconnectOptions& options) {
  Engine& engine = queue_pair.device()->engine();
  const Time deadline = deadline_after(engine.clock().now(), options.timeout);
  engine.exclusively([&] { queue_pair.begin_disconnect(); });
  if (wait_ended(queue_pair, deadline)) return;
  engine.exclusively([&] { queue_pair.give_up_closing(); });
}

bool wait_disconnected(RcQueuePair& queue_pair, Duration timeout) {
  const Engine& engine = queue_pair.device()->engine();
  return wait_ended(queue_pair, deadline_after(engine.clock().now(), timeout));
}

}  // namespace diwarp::rnic
