// SPDX-License-Identifier: Apache-2.0

// The whole of the fake librdmacm.so.1: each function is in the fake libibverbs.so.1.
#include "fake_rdma_core/exports_cm.h"

namespace {

const FakeCmFunctions& cm() { return *fake_cm_functions(); }

}  // namespace

extern "C" {

rdma_event_channel* rdma_create_event_channel(void) { return cm().create_event_channel(); }
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  cm().destroy_event_channel(channel);
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
  return cm().create_id(channel, id, context, space);
}
int rdma_destroy_id(rdma_cm_id* id) { return cm().destroy_id(id); }
int rdma_bind_addr(rdma_cm_id* id, sockaddr* local) { return cm().bind_addr(id, local); }
int rdma_resolve_addr(rdma_cm_id* id, sockaddr* source, sockaddr* peer, int timeout_ms) {
  return cm().resolve_addr(id, source, peer, timeout_ms);
}
int rdma_resolve_route(rdma_cm_id* id, int timeout_ms) {
  return cm().resolve_route(id, timeout_ms);
}
int rdma_connect(rdma_cm_id* id, rdma_conn_param* parameters) {
  return cm().connect(id, parameters);
}
int rdma_listen(rdma_cm_id* id, int backlog) { return cm().listen(id, backlog); }
int rdma_accept(rdma_cm_id* id, rdma_conn_param* parameters) { return cm().accept(id, parameters); }
int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t length) {
  return cm().reject(id, private_data, length);
}
int rdma_disconnect(rdma_cm_id* id) { return cm().disconnect(id); }
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  return cm().get_cm_event(channel, event);
}
int rdma_ack_cm_event(rdma_cm_event* event) { return cm().ack_cm_event(event); }
const char* rdma_event_str(rdma_cm_event_type type) { return cm().event_str(type); }
ibv_context** rdma_get_devices(int* count) { return cm().get_devices(count); }
void rdma_free_devices(ibv_context** list) { cm().free_devices(list); }
__be16 rdma_get_src_port(rdma_cm_id* id) { return cm().get_src_port(id); }
__be16 rdma_get_dst_port(rdma_cm_id* id) { return cm().get_dst_port(id); }
int rdma_set_option(rdma_cm_id* id, int level, int option, void* value, size_t size) {
  return cm().set_option(id, level, option, value, size);
}

}  // extern "C"
