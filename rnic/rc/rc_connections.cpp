// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_connections.h"

#include <utility>

#include "rnic/context/connection_control.h"
#include "rnic/context/peer_timeouts.h"
#include "rnic/engine/blocking_call.h"
#include "rnic/rc/rc_queue_pair.h"
#include "rnic/rc/rc_state.h"

namespace diwarp::rnic {

/// The peer's private data go to the caller.
std::vector<std::byte> RcConnections::take_over(NegotiatedConnection connection) {
  std::vector<std::byte> private_data = std::move(connection.private_data);
  queue_pair_.start(std::move(connection));
  return private_data;
}

/// True where the connection has ended, or there is none; false where it has not at `deadline`.
bool RcConnections::wait_ended(Time deadline) {
  if (!is_connected(queue_pair_.state())) return true;
  Engine& engine = queue_pair_.device()->engine();
  RcObservers::Waiter waiter;
  engine.exclusively([&] { queue_pair_.observers().add(waiter); });
  for (Time now = engine.clock().now(); is_connected(queue_pair_.state()) && now < deadline;
       now = engine.clock().now())
    block(engine, waiter.blocking_wait, deadline - now);
  engine.exclusively([&] { waiter.unlink(); });
  return !is_connected(queue_pair_.state());
}

std::vector<std::byte> RcConnections::connect(const Address& peer, const ConnectOptions& options) {
  require_init(queue_pair_.state());
  return take_over(queue_pair_.device()->connections().connect(peer, options));
}

std::vector<std::byte> RcConnections::connect_on(int descriptor, const ConnectOptions& options) {
  require_init(queue_pair_.state());
  return take_over(queue_pair_.device()->connections().connect_on(descriptor, options));
}

std::vector<std::byte> RcConnections::accept_on(int descriptor, const AcceptOptions& options,
                                                Duration timeout) {
  require_init(queue_pair_.state());
  return take_over(queue_pair_.device()->connections().accept_on(descriptor, options, timeout));
}

void RcConnections::modify_to_rtr(const StreamAttributes& stream) {
  require_init(queue_pair_.state());
  DeviceContext& device = *queue_pair_.device();
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
  queue_pair_.start(std::move(connection), QpState::rtr);
}

void RcConnections::await_peer(const NamedPeer& peer) {
  require_init(queue_pair_.state());
  DeviceContext& device = *queue_pair_.device();
  auto meeting = device.connections().make_meeting(queue_pair_.number(), peer, queue_pair_);
  device.engine().exclusively([&] { queue_pair_.await(std::move(meeting)); });
}

void RcConnections::limit_peer_wait(Duration timeout) {
  check_peer_wait(timeout);
  queue_pair_.device()->engine().exclusively([&] { queue_pair_.limit_meeting(timeout); });
}

void RcConnections::disconnect(const DisconnectOptions& options) {
  Engine& engine = queue_pair_.device()->engine();
  const Time deadline = deadline_after(engine.clock().now(), options.timeout);
  engine.exclusively([&] { queue_pair_.begin_disconnect(); });
  if (wait_ended(deadline)) return;
  engine.exclusively([&] { queue_pair_.give_up_closing(); });
}

bool RcConnections::wait_disconnected(Duration timeout) {
  const Engine& engine = queue_pair_.device()->engine();
  return wait_ended(deadline_after(engine.clock().now(), timeout));
}

}  // namespace diwarp::rnic
