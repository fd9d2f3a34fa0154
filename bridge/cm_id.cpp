// SPDX-License-Identifier: Apache-2.0
#include "bridge/cm_id.h"

#include <chrono>
#include <string>
#include <utility>

#include "bridge/listener.h"
#include "bridge/queue_pair.h"
#include "bridge/refuse.h"
#include "provider/own.h"

namespace diwarp::bridge {
namespace {

using State = Connection::State;

/// A peer's request while its event waits.
class Request final : public provider::CmRequest {
 public:
  Request(std::shared_ptr<CmId> id, std::shared_ptr<std::atomic<size_t>> waiting)
      : id_(std::move(id)), waiting_(std::move(waiting)) {
    ++*waiting_;
  }
  ~Request() override { --*waiting_; }

  std::shared_ptr<provider::CmId> fetch(
      const std::shared_ptr<provider::CmChannel>& channel) override {
    id_->migrate(channel);  // its listener may have moved
    return std::move(id_);
  }
  /// An id that ends rejects what waits for an answer.
  void drop() override { id_.reset(); }

 private:
  std::shared_ptr<CmId> id_;
  std::shared_ptr<std::atomic<size_t>> waiting_;
};

}  // namespace

std::shared_ptr<CmId> CmId::make(std::shared_ptr<Device> device,
                                 std::shared_ptr<provider::CmChannel> channel, uint64_t context) {
  auto connection = Connection::make(*device);
  std::shared_ptr<CmId> made(
      new CmId(std::move(device), std::move(channel), context, std::move(connection)));
  const ControlLock lock(*made->device_);
  add_to_device(made);
  return made;
}

/// From now on it is told when the device goes. With the device's mutex held.
void CmId::add_to_device(const std::shared_ptr<CmId>& made) {
  made->device_->add_removable(made);
  made->device_->async_events().add(made.get(), made);
}

CmId::CmId(std::shared_ptr<Device> device, std::shared_ptr<provider::CmChannel> channel,
           uint64_t context, std::shared_ptr<Connection> connection)
    : device_(std::move(device)),
      number_(provider::next_cm_number()),
      context_(context),
      connection_(std::move(connection)),
      channel_(std::move(channel)),
      waiting_(std::make_shared<std::atomic<size_t>>(0)) {
  connection_->observe(this);
  channel_->add(device_);
}

CmId::~CmId() {
  device_->async_events().remove(this);
  {
    const ControlLock lock(*device_);
    connection_->observe(nullptr);
    if (connection_->state() == State::requested) connection_->drop_request();
    connection_->lose({});
  }
  for (provider::CmChannel::Record& record : channel_->purge(number_))
    if (record.request) record.request->drop();
}

void CmId::require(bool right, const char* what) const {
  if (!right)
    refuse(Errc::invalid_state,
           std::string(what) + " is not for a connection manager id in this state");
}

// --- Events.

void CmId::on_connection(CmEventInfo info) {
  const bool removal = info.type == CmEventType::device_removal;
  if (removal && std::exchange(removal_told_, true)) return;
  info.id = number_;
  info.context = context_;
  channel_->push({.info = std::move(info)});
}

void CmId::on_request(CmNotice notice) {
  const uint16_t ord = notice.initiator_depth;
  const uint16_t ird = notice.responder_resources;
  auto connection = Connection::of_request(*device_, std::move(notice));
  if (*waiting_ >= max_requests_) return connection->drop_request();
  // The application may fetch it and be done with it at once, or nobody will.
  device_->reserve_drops(2);
  std::shared_ptr<CmId> asked(new CmId(device_, channel_, context_, connection));
  device_->drop_later(asked);
  asked->peer_ = connection->peer_address();
  asked->local_ = connection->local_address();
  add_to_device(asked);
  auto request = std::make_shared<Request>(asked, waiting_);
  device_->drop_later(request);
  channel_->push({.info = {.type = CmEventType::connect_request,
                           .id = asked->number_,
                           .listener = number_,
                           .context = context_,
                           .private_data = connection->private_data(),
                           .ord = ord,
                           .ird = ird},
                  .request = std::move(request)});
}

/// The connection manager tells of a removal only those ids that are bound to the device.
void CmId::on_async_event(ibv_event_type type, const void*) {
  if (type != IBV_EVENT_DEVICE_FATAL) return;
  const ControlLock lock(*device_);
  on_connection({.type = CmEventType::device_removal});
  connection_->lose(Errc::device_gone);
}

// --- The side that connects.

void CmId::resolve_addr(const Address& peer) {
  const ControlLock lock(*device_);
  require(connection_->state() == State::idle && !listening_, "resolve_addr()");
  const Address own = device_->address();
  if (peer.family() != own.family() || peer.port() == 0)
    refuse(Errc::invalid_destination, "The device " + device_->name() + " on " + own.host() +
                                          " cannot reach " + peer.to_string() +
                                          ": it needs a port and an address of the same family");
  peer_ = peer;
  try {
    connection_->resolve(bound_ ? local_ : own.with_port(0), peer, Duration::max());
  } catch (const Error& error) {
    on_connection(
        {.type = CmEventType::addr_error, .status = error.code(), .message = error.what()});
  }
}

void CmId::resolve_route() {
  const ControlLock lock(*device_);
  require(connection_->state() == State::resolved, "resolve_route()");
  connection_->resolve_route();
}

void CmId::connect(provider::QueuePair& queue_pair, const ConnectOptions& options) {
  QueuePair& own = own_queue_pair(queue_pair, *device_);
  check_options(*device_, options);
  const ControlLock lock(*device_);
  require(connection_->connectable(), "connect()");
  connection_->connect(own.shared_from_this(), options);
}

// --- The side that is connected to.

void CmId::bind(const Address& local) {
  const Address own = device_->address();
  if (local.family() != own.family() || (!local.is_any() && local.with_port(0) != own))
    refuse(Errc::invalid_argument,
           "A device on " + own.host() + " cannot be bound to " + local.to_string());
  const ControlLock lock(*device_);
  require(connection_->state() == State::idle && !bound_, "bind()");
  bound_ = true;
  local_ = own.with_port(local.port());
}

void CmId::listen(const ListenOptions& options) {
  check_options(*device_, options);
  const ControlLock lock(*device_);
  require(connection_->state() == State::idle && !listening_, "listen()");
  const Address local = bound_ ? local_ : device_->address().with_port(0);
  max_requests_ = options.max_requests;
  begin_listening(*device_, connection_->id(), local, options.backlog);
  listening_ = true;
  local_ = connection_->local_address();
}

void CmId::accept(provider::QueuePair& queue_pair, const AcceptOptions& options) {
  QueuePair& own = own_queue_pair(queue_pair, *device_);
  check_options(*device_, options);
  const ControlLock lock(*device_);
  require(connection_->state() == State::requested, "accept()");
  connection_->accept(own.shared_from_this(), options);
}

void CmId::reject(std::span<const std::byte> private_data) {
  check_private_data(private_data);
  const ControlLock lock(*device_);
  require(connection_->state() == State::requested, "reject()");
  connection_->reject(private_data);
}

// --- Both.

void CmId::disconnect(const DisconnectOptions& options) {
  const ControlLock lock(*device_);
  const State now = connection_->state();
  require(now == State::established || now == State::accepting || now == State::closing ||
              now == State::over,
          "disconnect()");
  connection_->begin_close(options.timeout);
}

void CmId::migrate(std::shared_ptr<provider::CmChannel> channel) {
  channel->add(device_);
  const ControlLock lock(*device_);
  if (channel == channel_) return;
  channel_->move_events(number_, *channel);
  channel_ = std::move(channel);
}

Address CmId::local_address() const {
  const ControlLock lock(*device_);
  return bound_ || listening_ ? local_ : connection_->local_address();
}

Address CmId::peer_address() const {
  const ControlLock lock(*device_);
  return peer_;
}

}  // namespace diwarp::bridge
