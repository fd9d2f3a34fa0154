// SPDX-License-Identifier: Apache-2.0
#include "rnic/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "acceptor.h"
#include "diwarp/error.h"
#include "negotiation.h"
#include "rnic/device.h"
#include "rnic/rc_queue_pair.h"
#include "rnic/waiting.h"

namespace diwarp::rnic {

namespace {

[[noreturn]] void throw_listen_error(int error, const Address& address) {
  if (error == EADDRINUSE)
    throw Error(make_error_code(Errc::address_in_use),
                "Another socket listens on " + address.to_string() +
                    ": stop it, or choose another port (0 takes a free one)");
  throw Error(system_error(error), "Cannot listen on " + address.to_string() +
                                       ": ports below 1024 may need privileges; else see whether "
                                       "descriptors are left (ulimit -n)");
}

UniqueFd open_listening(const Address& address, int backlog) {
  UniqueFd fd = open_tcp(address.family());
  const int on = 1;
  const int only_ipv6 = address.is_any() ? 0 : 1;
  sockaddr_storage storage;
  const socklen_t length = address.to_sockaddr(storage);
  // Connections of an earlier listener that linger in TIME_WAIT are no hindrance.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AddressFamily::ipv6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
  const bool listens = fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 &&
                       ::listen(fd.get(), std::max(backlog, 1)) == 0;
  if (!listens) throw_listen_error(errno, address);
  return fd;
}

Address bound_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    throw Error(system_error(errno), "The listening socket's address cannot be read");
  return Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage));
}

}  // namespace

// --- The listener.

Listener::Listener(std::shared_ptr<Device> device, uint16_t port, const ListenOptions& options)
    : device_(std::move(device)) {
  UniqueFd fd = open_listening(device_->address().with_port(port), options.backlog);
  address_ = bound_address(fd.get());
  Control& control = device_->control();
  acceptor_ = std::make_shared<Acceptor>(control, std::move(fd), options);
  boost::asio::post(control.context(), [acceptor = acceptor_] { acceptor->begin(); });
}

Listener::~Listener() {
  std::deque<IncomingRequest> left;
  device_->control().exclusively([&] { left = acceptor_->close(); });
  for (IncomingRequest& request : left)
    reject_connection(device_->control(), std::move(request.stream), {});
}

std::shared_ptr<ConnectionRequest> Listener::get_request(Duration timeout) {
  Engine& engine = device_->engine();
  const Time deadline = deadline_after(engine.clock().now(), timeout);
  for (;;) {
    const Time now = engine.clock().now();
    // A request and its wake belong together: whoever used the wake up takes the request.
    if (rest(engine, acceptor_->sleeper(), deadline - now))
      return std::make_shared<ConnectionRequest>(device_, acceptor_->take());
    if (now >= deadline) return nullptr;
  }
}

// --- A request.

ConnectionRequest::ConnectionRequest(std::shared_ptr<Device> device, IncomingRequest request)
    : device_(std::move(device)),
      peer_(request.stream->peer_address()),
      request_(std::move(request)) {}

ConnectionRequest::~ConnectionRequest() {
  if (request_.stream) reject_connection(device_->control(), std::move(request_.stream), {});
}

void ConnectionRequest::require_unanswered() const {
  if (request_.stream) return;
  throw Error(make_error_code(Errc::invalid_state),
              "This connection request was answered already; each takes one answer");
}

void ConnectionRequest::accept(QueuePair& queue_pair, const AcceptOptions& options) {
  require_unanswered();
  check_private_data(options.private_data);
  if (queue_pair.type() != QpType::rc)
    throw Error(make_error_code(Errc::unsupported_operation),
                "Only a queue pair of type rc can take a connection");
  if (queue_pair.device() != device_)
    throw Error(make_error_code(Errc::invalid_argument),
                "The queue pair belongs to another device than the listener");
  auto& taker = static_cast<RcQueuePair&>(queue_pair);
  taker.require_init();

  Established connection;
  connection.initiator = false;
  connection.agreement = mpa::judge_request({.crc = request_.crc}, options.crc).agreement;
  connection.leftover = std::move(request_.leftover);
  connection.stream = std::move(request_.stream);
  const mpa::StartupFrame reply{.kind = mpa::FrameKind::reply,
                                .crc = connection.agreement.crc,
                                .private_data = options.private_data};
  if (!send_reply(*connection.stream, reply))
    throw Error(make_error_code(Errc::connection_lost),
                peer_.to_string() + " gave up before it was accepted");
  taker.start(std::move(connection));
}

void ConnectionRequest::reject(std::span<const std::byte> private_data) {
  require_unanswered();
  check_private_data(private_data);
  reject_connection(device_->control(), std::move(request_.stream), private_data);
}

}  // namespace diwarp::rnic
