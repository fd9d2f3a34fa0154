// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/cm_channel.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "fake_rdma_core/cm_id.h"
#include "fake_rdma_core/limits.h"
#include "fake_rdma_core/threads.h"

namespace fake {
namespace {

rdma_cm_event_type type_of(diwarp::CmEventType type) {
  switch (type) {
    case diwarp::CmEventType::addr_resolved:
      return RDMA_CM_EVENT_ADDR_RESOLVED;
    case diwarp::CmEventType::addr_error:
      return RDMA_CM_EVENT_ADDR_ERROR;
    case diwarp::CmEventType::route_resolved:
      return RDMA_CM_EVENT_ROUTE_RESOLVED;
    case diwarp::CmEventType::connect_request:
      return RDMA_CM_EVENT_CONNECT_REQUEST;
    case diwarp::CmEventType::connect_error:
      return RDMA_CM_EVENT_CONNECT_ERROR;
    case diwarp::CmEventType::unreachable:
      return RDMA_CM_EVENT_UNREACHABLE;
    case diwarp::CmEventType::rejected:
      return RDMA_CM_EVENT_REJECTED;
    case diwarp::CmEventType::established:
      return RDMA_CM_EVENT_ESTABLISHED;
    case diwarp::CmEventType::disconnected:
      return RDMA_CM_EVENT_DISCONNECTED;
    case diwarp::CmEventType::device_removal:
      return RDMA_CM_EVENT_DEVICE_REMOVAL;
  }
  return RDMA_CM_EVENT_ADDR_ERROR;
}

/// A reject is told as Linux's siw does. Where nobody listens it is ECONNREFUSED.
int status_of(const diwarp::CmEvent& event) {
  if (event.status == diwarp::Errc::rejected) return -ECONNRESET;
  return event.status ? -errno_of(event.status) : 0;
}

uint8_t depth_of(uint16_t depth) {
  return static_cast<uint8_t>(std::min<uint32_t>(depth, kMaxRdAtomic));
}

/// What the kernel makes of the depths: of a request the peer's, IRD and ORD; of a connection this
/// side's own, IRD and ORD.
void add_depths(CmRecord& record, const diwarp::CmEvent& event) {
  const bool request = event.type == diwarp::CmEventType::connect_request;
  record.initiator_depth = depth_of(request ? event.ord : event.ird);
  record.responder_resources = depth_of(request ? event.ird : event.ord);
}

}  // namespace

CmChannel::CmChannel() : rdma_event_channel{} {
  fd = records.fd();
  thread_ = start_thread([this] { run(); });
}

CmChannel::~CmChannel() {
  stop_.push(0);
  thread_.join();
}

void CmChannel::add(uint64_t serial, CmId& id) {
  const std::lock_guard lock(mutex_);
  ids_[serial] = &id;
}

void CmChannel::remove(uint64_t serial, const CmId& id) {
  {
    const std::lock_guard lock(mutex_);
    ids_.erase(serial);
  }
  records.purge([&](const CmRecord& record) { return record.id == &id; });
}

void CmChannel::run() {
  std::array<pollfd, 2> watched = {pollfd{inner.descriptor(), POLLIN, 0},
                                   pollfd{stop_.fd(), POLLIN, 0}};
  while (watched[1].revents == 0) {
    ::poll(watched.data(), watched.size(), -1);
    while (auto event = inner.get_event(diwarp::Duration::zero())) dispatch(*event);
  }
}

void CmChannel::dispatch(diwarp::CmEvent& event) {
  const std::lock_guard lock(mutex_);
  const auto found = ids_.find(event.context);
  if (found == ids_.end()) return;  // what it asks for is rejected with it
  CmRecord record = {.id = found->second,
                     .type = type_of(event.type),
                     .status = status_of(event),
                     .private_data = std::move(event.private_data)};
  add_depths(record, event);
  if (event.request) record.request.emplace(std::move(*event.request));
  if (found->second->take_note(record)) records.push(std::move(record));
}

FetchedCmEvent::FetchedCmEvent(CmRecord&& record)
    : rdma_cm_event{}, counted_at_(*record.id), private_data_(std::move(record.private_data)) {
  id = &counted_at_;
  event = record.type;
  status = record.status;
  if (!private_data_.empty()) param.conn.private_data = private_data_.data();
  param.conn.private_data_len = static_cast<uint8_t>(std::min<size_t>(private_data_.size(), 255));
  param.conn.initiator_depth = record.initiator_depth;
  param.conn.responder_resources = record.responder_resources;
  if (record.request) {
    listen_id = &counted_at_;
    id = new CmId(counted_at_, std::move(record));
  } else {
    counted_at_.deliver(record.type);
  }
}

FetchedCmEvent::~FetchedCmEvent() { counted_at_.acknowledgements.acknowledge(1); }

}  // namespace fake
