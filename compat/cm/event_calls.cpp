// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm about channels and events.
#include "compat/cm/event_calls.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "compat/cm/event_facts.h"
#include "compat/cm/id.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"

namespace diwarp::compat {
namespace {

/// The API has a byte for the length.
constexpr size_t kMostPrivateData = 255;

std::unique_ptr<CmEventBlock> block_of(PendingCmEvent& pending) {
  auto block = std::make_unique<CmEventBlock>();
  static_cast<rdma_cm_event&>(*block) = pending.event;
  block->counted = pending.about;
  block->id = pending.about;
  block->data = std::move(pending.private_data);
  if (block->data.empty()) return block;
  block->param.conn.private_data = block->data.data();
  block->param.conn.private_data_len =
      static_cast<uint8_t>(std::min(block->data.size(), kMostPrivateData));
  return block;
}

std::unique_ptr<Id> request_id(PendingCmEvent& pending, const rdma_cm_event& event) {
  if (pending.ud_request)
    return std::make_unique<Id>(*pending.about, std::move(*pending.ud_request), pending.device);
  return std::make_unique<Id>(*pending.about, std::move(*pending.request), pending.device, event);
}

void add_request(PendingCmEvent& pending, EventChannel& channel, rdma_cm_event& event) {
  event.listen_id = pending.about;
  std::unique_ptr<Id> made = request_id(pending, event);
  LiveObjects<Id>::add(made.get());
  channel.pace.fetched(made.get());
  event.id = made.release();
}

rdma_cm_event* made_ready(PendingCmEvent& pending, EventChannel& channel) {
  std::unique_ptr<CmEventBlock> block = block_of(pending);
  if (pending.request || pending.ud_request) add_request(pending, channel, *block);
  if (block->event == RDMA_CM_EVENT_ESTABLISHED) pending.about->note_addresses();
  LiveObjects<CmEventBlock>::add(block.get());
  return block.release();
}

}  // namespace

rdma_cm_event* fetch_event(EventChannel& channel) {
  // A program that never waits here handles one event after the other by itself.
  if (may_wait(channel.fd)) channel.pace.wait();
  for (;;) {
    PendingCmEvent pending = channel.events.take();
    // What the program does not get counts as acknowledged. A request is rejected.
    try {
      // A peer that has gone, and whose device has, too, leaves no request.
      const bool answerable = pending.request || pending.ud_request;
      if (answerable || pending.event.event != RDMA_CM_EVENT_CONNECT_REQUEST)
        return made_ready(pending, channel);
    } catch (const std::exception& error) {
      log_line(LogLevel::error, std::string("a connection event was lost: ") + error.what());
    } catch (const Refusal&) {  // the address of a request is none of this host's any more
    }
    pending.about->acknowledgements.acknowledge();
  }
}

void acknowledge_event(rdma_cm_event* event) {
  auto* const block = static_cast<CmEventBlock*>(event);
  LiveObjects<CmEventBlock>::take(block);
  Id* const counted = block->counted;
  delete block;
  counted->acknowledgements.acknowledge();
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

namespace {

/// The channel was destroyed while this thread waited. In the kernel such a call does not return at
/// all: programs that destroy the channel and then exit count on it, as rping does, whose thread
/// would end the process with an error.
void outlive_an_exit() { std::this_thread::sleep_for(std::chrono::seconds(3)); }

struct EventName {
  rdma_cm_event_type of;
  const char* name;
};
constexpr EventName kNames[] = {
    {RDMA_CM_EVENT_ADDR_RESOLVED, "RDMA_CM_EVENT_ADDR_RESOLVED"},
    {RDMA_CM_EVENT_ADDR_ERROR, "RDMA_CM_EVENT_ADDR_ERROR"},
    {RDMA_CM_EVENT_ROUTE_RESOLVED, "RDMA_CM_EVENT_ROUTE_RESOLVED"},
    {RDMA_CM_EVENT_ROUTE_ERROR, "RDMA_CM_EVENT_ROUTE_ERROR"},
    {RDMA_CM_EVENT_CONNECT_REQUEST, "RDMA_CM_EVENT_CONNECT_REQUEST"},
    {RDMA_CM_EVENT_CONNECT_RESPONSE, "RDMA_CM_EVENT_CONNECT_RESPONSE"},
    {RDMA_CM_EVENT_CONNECT_ERROR, "RDMA_CM_EVENT_CONNECT_ERROR"},
    {RDMA_CM_EVENT_UNREACHABLE, "RDMA_CM_EVENT_UNREACHABLE"},
    {RDMA_CM_EVENT_REJECTED, "RDMA_CM_EVENT_REJECTED"},
    {RDMA_CM_EVENT_ESTABLISHED, "RDMA_CM_EVENT_ESTABLISHED"},
    {RDMA_CM_EVENT_DISCONNECTED, "RDMA_CM_EVENT_DISCONNECTED"},
    {RDMA_CM_EVENT_DEVICE_REMOVAL, "RDMA_CM_EVENT_DEVICE_REMOVAL"},
    {RDMA_CM_EVENT_MULTICAST_JOIN, "RDMA_CM_EVENT_MULTICAST_JOIN"},
    {RDMA_CM_EVENT_MULTICAST_ERROR, "RDMA_CM_EVENT_MULTICAST_ERROR"},
    {RDMA_CM_EVENT_ADDR_CHANGE, "RDMA_CM_EVENT_ADDR_CHANGE"},
    {RDMA_CM_EVENT_TIMEWAIT_EXIT, "RDMA_CM_EVENT_TIMEWAIT_EXIT"},
};

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT rdma_event_channel* rdma_create_event_channel() {
  return or_null([]() -> rdma_event_channel* { return EventChannel::make().get(); });
}

DIWARP_COMPAT_EXPORT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  quietly([&] { EventChannel::release(channel); });
}

DIWARP_COMPAT_EXPORT int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return minus_one([&] {
    refuse_if(event == nullptr, EINVAL);
    // Held while it waits, so that another thread may destroy the channel.
    const auto held = EventChannel::shared(channel);
    try {
      *event = fetch_event(*held);
    } catch (const Refusal& refusal) {
      if (refusal.code() == EBADF) outlive_an_exit();
      throw;
    }
  });
}

DIWARP_COMPAT_EXPORT int rdma_ack_cm_event(rdma_cm_event* event) {
  return minus_one([&] {
    refuse_if(event == nullptr, EINVAL);
    acknowledge_event(event);
  });
}

DIWARP_COMPAT_EXPORT const char* rdma_event_str(rdma_cm_event_type event) {
  for (const EventName& one : kNames)
    if (one.of == event) return one.name;
  return "UNKNOWN EVENT";
}

}  // extern "C"
