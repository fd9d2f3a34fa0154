// SPDX-License-Identifier: Apache-2.0
#include "bridge/listener.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include "bridge/queue_pair.h"
#include "bridge/refuse.h"
#include "provider/own.h"

namespace diwarp::bridge {
namespace {

/// How long accept() waits for the device to say that the connection is there.
constexpr Duration kAcceptPatience = std::chrono::seconds(10);

}  // namespace

void check_options(const Device& device, const ListenOptions& options) {
  if (options.ipv6_only) device.refuse_unsupported("ipv6_only");
  const ListenOptions defaults;
  if (options.max_startups != defaults.max_startups ||
      options.max_startups_per_address != defaults.max_startups_per_address ||
      options.request_timeout != defaults.request_timeout)
    device.refuse_unsupported("limits of connections that have not asked yet");
}

void begin_listening(const Device& device, rdma_cm_id* id, const Address& local, int backlog) {
  sockaddr_storage name;
  local.to_sockaddr(name);
  const bool listening = device.cm().bind_addr(id, reinterpret_cast<sockaddr*>(&name)) == 0 &&
                         device.cm().listen(id, backlog) == 0;
  if (listening) return;
  if (errno == EADDRINUSE)
    refuse(Errc::address_in_use, "Another listener has " + local.to_string());
  refuse_errno(errno, "The device " + device.name() + " cannot listen on " + local.to_string());
}

// --- Requests.

ConnectionRequest::ConnectionRequest(std::shared_ptr<Device> device,
                                     std::shared_ptr<Connection> connection)
    : device_(std::move(device)),
      connection_(std::move(connection)),
      private_data_(connection_->private_data()),
      peer_(connection_->peer_address()),
      depths_(connection_->requested_depths()) {}

ConnectionRequest::~ConnectionRequest() {
  if (!connection_) return;
  const ControlLock lock(*device_);
  if (connection_->state() == Connection::State::requested) connection_->drop_request();
}

void ConnectionRequest::require_unanswered() const {
  if (!connection_)
    refuse(Errc::invalid_state,
           "This connection request was answered already; each takes one answer");
}

void ConnectionRequest::accept(provider::QueuePair& queue_pair, const AcceptOptions& options) {
  require_unanswered();
  check_options(*device_, options);
  QueuePair& own = own_queue_pair(queue_pair, *device_);
  const std::shared_ptr<Connection> connection = connection_;  // ends without the mutex
  ControlLock lock(*device_);
  if (connection->state() != Connection::State::requested)
    refuse(Errc::connection_lost, "The peer has given up before the request was answered");
  connection->accept(own.shared_from_this(), options);
  connection_.reset();
  const Time deadline = deadline_after(SteadyClock::instance().now(), kAcceptPatience);
  if (!device_->wait(lock, deadline, [&] { return !connection->connecting(); }))
    connection->lose(Errc::timed_out);
  if (connection->failed())
    refuse(Errc::connection_lost, "The peer has given up before the connection was there");
}

void ConnectionRequest::reject(std::span<const std::byte> private_data) {
  require_unanswered();
  check_private_data(private_data);
  const std::shared_ptr<Connection> connection = std::exchange(connection_, nullptr);
  const ControlLock lock(*device_);
  connection->reject(private_data);
}

// --- The listener.

std::shared_ptr<Listener> Listener::open(std::shared_ptr<Device> device, const Address& local,
                                         const ListenOptions& options) {
  check_options(*device, options);
  std::shared_ptr<Listener> made(new Listener(std::move(device), options));
  made->endpoint_.handle_with(made);
  begin_listening(*made->device_, made->endpoint_.get(), local, options.backlog);
  made->address_ = Address::from_sockaddr(&made->endpoint_.get()->route.addr.src_addr);
  return made;
}

Listener::Listener(std::shared_ptr<Device> device, const ListenOptions& options)
    : device_(std::move(device)),
      max_requests_(options.max_requests),
      endpoint_(device_->make_endpoint()) {}

Listener::~Listener() {
  endpoint_.reset();
  std::deque<std::shared_ptr<Connection>> left;  // ends without the mutex
  const ControlLock lock(*device_);
  left = std::move(requests_);
  for (const std::shared_ptr<Connection>& connection : left) connection->drop_request();
}

void Listener::on_cm_event(CmNotice notice) {
  if (notice.type == RDMA_CM_EVENT_DEVICE_REMOVAL) gone_ = true;
  if (notice.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
  auto connection = Connection::of_request(*device_, std::move(notice));
  if (requests_.size() >= max_requests_) return connection->drop_request();
  requests_.push_back(std::move(connection));
}

std::shared_ptr<provider::ConnectionRequest> Listener::get_request(Duration timeout) {
  const Time deadline = deadline_after(SteadyClock::instance().now(), timeout);
  ControlLock lock(*device_);
  if (!device_->wait(lock, deadline, [this] { return gone_ || !requests_.empty(); }))
    return nullptr;
  if (gone_) refuse(Errc::device_gone, "The device " + device_->name() + " was removed");
  std::shared_ptr<Connection> connection = std::move(requests_.front());
  requests_.pop_front();
  return std::make_shared<ConnectionRequest>(device_, std::move(connection));
}

}  // namespace diwarp::bridge
