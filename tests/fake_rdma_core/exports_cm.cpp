// SPDX-License-Identifier: Apache-2.0

// The functions of librdmacm. Each counts its call and may be made to fail (injection.h).
#include "fake_rdma_core/exports_cm.h"

#include <endian.h>
#include <netinet/in.h>

#include <vector>

#include "fake_rdma_core/cm_channel.h"
#include "fake_rdma_core/cm_id.h"
#include "fake_rdma_core/context.h"
#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/injection.h"
#include "fake_rdma_core/lists.h"
#include "fake_rdma_core/strings.h"

namespace fake {
namespace {

CmId& of(rdma_cm_id* id) { return *static_cast<CmId*>(id); }

/// Runs a call that returns nothing but its success.
template <class Body>
int guarded_call(FunctionName function, Body&& body) {
  return guarded(function, [&] {
    body();
    return 0;
  });
}

rdma_event_channel* create_event_channel() {
  return guarded("rdma_create_event_channel",
                 []() -> rdma_event_channel* { return new CmChannel; });
}
void destroy_event_channel(rdma_event_channel* channel) {
  guarded("rdma_destroy_event_channel", [&] {
    static_cast<CmChannel*>(channel)->users.check_none();  // it stays, which fake_objects() tells
    delete static_cast<CmChannel*>(channel);
  });
}
int create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context, rdma_port_space space) {
  return guarded_call("rdma_create_id", [&] {
    refuse_if(channel == nullptr || space != RDMA_PS_TCP, EOPNOTSUPP);
    *id = new CmId(*static_cast<CmChannel*>(channel), context, space);
  });
}
int destroy_id(rdma_cm_id* id) {
  return guarded_call("rdma_destroy_id", [&] { delete &of(id); });
}
int bind_addr(rdma_cm_id* id, sockaddr* local) {
  return guarded_call("rdma_bind_addr", [&] { of(id).bind(local); });
}
int resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* peer, int /*timeout_ms*/) {
  return guarded_call("rdma_resolve_addr", [&] { of(id).resolve_addr(source, peer); });
}
int resolve_route(rdma_cm_id* id, int /*timeout_ms*/) {
  return guarded_call("rdma_resolve_route", [&] { of(id).resolve_route(); });
}
int connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  return guarded_call("rdma_connect", [&] { of(id).connect(parameters); });
}
int listen(rdma_cm_id* id, int backlog) {
  return guarded_call("rdma_listen", [&] { of(id).listen(backlog); });
}
int accept(rdma_cm_id* id, rdma_conn_param* parameters) {
  return guarded_call("rdma_accept", [&] { of(id).accept(parameters); });
}
int reject(rdma_cm_id* id, const void* private_data, uint8_t length) {
  return guarded_call("rdma_reject", [&] {
    of(id).reject({static_cast<const std::byte*>(private_data), length});
  });
}
int disconnect(rdma_cm_id* id) {
  return guarded_call("rdma_disconnect", [&] { of(id).disconnect(); });
}

int get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return guarded_call("rdma_get_cm_event", [&] {
    auto& records = static_cast<CmChannel*>(channel)->records;
    *event = new FetchedCmEvent(
        records.take([](const CmRecord& record) { record.id->acknowledgements.count_fetched(); }));
  });
}
int ack_cm_event(rdma_cm_event* event) {
  return guarded_call("rdma_ack_cm_event", [&] {
    refuse_if(event == nullptr, EINVAL);
    delete static_cast<FetchedCmEvent*>(event);
  });
}
const char* event_str(rdma_cm_event_type type) {
  return guarded("rdma_event_str", [&] { return cm_event_name(type); });
}

ibv_context** get_devices(int* count) {
  return guarded("rdma_get_devices", [&] {
    const std::vector<Adapter*> present = adapters();
    if (count != nullptr) *count = static_cast<int>(present.size());
    return new_list<ibv_context>(present,
                                 [](Adapter* adapter) { return &adapter->cm_context().context; });
  });
}
void free_devices(ibv_context** list) {
  guarded("rdma_free_devices", [&] { free_list(list); });
}
__be16 get_src_port(rdma_cm_id* id) {
  return guarded("rdma_get_src_port", [&] { return __be16{id->route.addr.src_sin.sin_port}; });
}
__be16 get_dst_port(rdma_cm_id* id) {
  return guarded("rdma_get_dst_port", [&] { return __be16{id->route.addr.dst_sin.sin_port}; });
}
int set_option(rdma_cm_id* /*id*/, int level, int option, void* /*value*/, size_t /*size*/) {
  return guarded_call("rdma_set_option", [&] {
    refuse_if(level != RDMA_OPTION_ID, ENOSYS);
    refuse_if(option < RDMA_OPTION_ID_TOS || option > RDMA_OPTION_ID_ACK_TIMEOUT, ENOSYS);
  });
}

constexpr FakeCmFunctions kFunctionTable = {
    .create_event_channel = create_event_channel,
    .destroy_event_channel = destroy_event_channel,
    .create_id = create_id,
    .destroy_id = destroy_id,
    .bind_addr = bind_addr,
    .resolve_addr = resolve_addr,
    .resolve_route = resolve_route,
    .connect = connect,
    .listen = listen,
    .accept = accept,
    .reject = reject,
    .disconnect = disconnect,
    .get_cm_event = get_cm_event,
    .ack_cm_event = ack_cm_event,
    .event_str = event_str,
    .get_devices = get_devices,
    .free_devices = free_devices,
    .get_src_port = get_src_port,
    .get_dst_port = get_dst_port,
    .set_option = set_option,
};

}  // namespace
}  // namespace fake

extern "C" const FakeCmFunctions* fake_cm_functions(void) { return &fake::kFunctionTable; }
