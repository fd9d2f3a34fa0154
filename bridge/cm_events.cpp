// SPDX-License-Identifier: Apache-2.0
#include "bridge/cm_events.h"

#include <fcntl.h>

#include <cerrno>
#include <span>
#include <utility>

#include "bridge/owned.h"
#include "bridge/refuse.h"
#include "bridge/sigpipe_guard.h"

namespace diwarp::bridge {
namespace {

constexpr const char* kCmFile = "/dev/infiniband/rdma_cm";

/// Fills in all but the request.
void copy(const rdma_cm_event& event, CmNotice& notice) {
  notice.type = event.event;
  notice.error = event.status < 0 ? -event.status : event.status;
  const rdma_conn_param& param = event.param.conn;
  const auto* const data = static_cast<const std::byte*>(param.private_data);
  if (data != nullptr) notice.private_data.assign(data, data + param.private_data_len);
  notice.initiator_depth = param.initiator_depth;
  notice.responder_resources = param.responder_resources;
}

/// Acknowledges an event at its end.
struct Acknowledged {
  const RdmaCore& core;
  rdma_cm_event* event;
  ~Acknowledged() { core.cm().ack_cm_event(event); }
};

}  // namespace

CmEvents::CmEvents(const RdmaCore& core) : core_(core), channel_(core.cm().create_event_channel()) {
  if (channel_ == nullptr)
    refuse_errno(errno,
                 std::string("The connection manager cannot be used; the module rdma_ucm must "
                             "be loaded, and this process able to open ") +
                     kCmFile);
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
}

CmEvents::~CmEvents() { core_.cm().destroy_event_channel(channel_); }

void CmEvents::add(rdma_cm_id* id, const std::weak_ptr<CmHandler>& handler) {
  const std::lock_guard lock(mutex_);
  handlers_[id] = handler;
}

void CmEvents::remove(rdma_cm_id* id) {
  const std::lock_guard lock(mutex_);
  handlers_.erase(id);
}

std::shared_ptr<CmHandler> CmEvents::handler_of(rdma_cm_id* id) {
  const std::lock_guard lock(mutex_);
  const auto found = handlers_.find(id);
  return found == handlers_.end() ? nullptr : found->second.lock();
}

bool CmEvents::next(Delivery& delivery) {
  rdma_cm_event* event = nullptr;
  if (core_.cm().get_cm_event(channel_, &event) != 0) return false;
  delivery = {};
  const Acknowledged acknowledged{core_, event};
  const bool asks = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
  if (asks) delivery.notice.request = CmEndpoint(*this, core_, event->id);
  // The id cannot be destroyed before this event is acknowledged.
  delivery.handler = handler_of(asks ? event->listen_id : event->id);
  copy(*event, delivery.notice);
  return true;
}

void CmEndpoint::handle_with(const std::weak_ptr<CmHandler>& handler) {
  events_->add(id_, handler);
}

CmEndpoint CmEndpoint::create(CmEvents& events, const RdmaCore& core) {
  rdma_cm_id* id = nullptr;
  if (core.cm().create_id(events.channel(), &id, nullptr, RDMA_PS_TCP) != 0)
    refuse_errno(errno, "No connection manager id can be made");
  return {events, core, id};
}

CmEndpoint::CmEndpoint(CmEndpoint&& other) noexcept
    : events_(other.events_), core_(other.core_), id_(std::exchange(other.id_, nullptr)) {}

CmEndpoint& CmEndpoint::operator=(CmEndpoint&& other) noexcept {
  reset();
  events_ = other.events_;
  core_ = other.core_;
  id_ = std::exchange(other.id_, nullptr);
  return *this;
}

void CmEndpoint::reset() {
  if (id_ == nullptr) return;
  events_->remove(id_);
  const SigpipeGuard guard;
  if (const int error = errno_of(core_->cm().destroy_id(std::exchange(id_, nullptr))))
    log_left(error);
}

}  // namespace diwarp::bridge
