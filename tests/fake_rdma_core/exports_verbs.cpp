// SPDX-License-Identifier: Apache-2.0

// The functions of libibverbs. Each counts its call and may be made to fail (injection.h).
#include <endian.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "fake_rdma_core/attributes.h"
#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/completion_queue.h"
#include "fake_rdma_core/context.h"
#include "fake_rdma_core/devices.h"
#include "fake_rdma_core/exports.h"
#include "fake_rdma_core/injection.h"
#include "fake_rdma_core/lists.h"
#include "fake_rdma_core/memory.h"
#include "fake_rdma_core/queue_pair.h"
#include "fake_rdma_core/shared_receive_queue.h"
#include "fake_rdma_core/strings.h"

// Macros of the header, which lead programs to these functions.
#undef ibv_query_port
#undef ibv_reg_mr

using namespace fake;  // NOLINT: the whole file is its outer face

namespace {

/// The port's attributes as they were before port_cap_flags2 was added.
constexpr size_t kCompatPortSize = offsetof(ibv_port_attr, port_cap_flags2);

Context& present(ibv_context* context) {
  Context& found = context_of(context);
  found.check_present();
  return found;
}

Pd& present(ibv_pd* pd) {
  present(pd->context);
  return *static_cast<Pd*>(pd);
}

/// Destroys an object that nothing rests on.
template <class Object, class Base>
int destroy(Base* base) {
  auto* const object = static_cast<Object*>(base);
  if constexpr (requires { object->users; }) object->users.check_none();
  delete object;
  return 0;
}

int query_port_into(ibv_context* context, uint8_t port, void* attributes, size_t size) {
  return guarded("ibv_query_port", [&] {
    const ibv_port_attr known = port_attributes(present(context).adapter, port);
    std::memset(attributes, 0, size);
    std::memcpy(attributes, &known, std::min(size, sizeof known));
    return 0;
  });
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  return guarded("ibv_get_device_list", [&] {
    const std::vector<Adapter*> present = adapters();
    if (count != nullptr) *count = static_cast<int>(present.size());
    return new_list<ibv_device>(present, [](Adapter* adapter) { return adapter; });
  });
}
void ibv_free_device_list(ibv_device** list) {
  guarded("ibv_free_device_list", [&] { free_list(list); });
}
const char* ibv_get_device_name(ibv_device* device) {
  return guarded("ibv_get_device_name", [&]() -> const char* { return device->name; });
}
__be64 ibv_get_device_guid(ibv_device* device) {
  return guarded("ibv_get_device_guid", [&] { return __be64{htobe64(adapter_of(device).guid())}; });
}
const char* ibv_node_type_str(ibv_node_type type) {
  return guarded("ibv_node_type_str", [&] { return node_type_name(type); });
}

ibv_context* ibv_open_device(ibv_device* device) {
  return guarded("ibv_open_device", [&] {
    auto* const opened = new OpenedContext(adapter_of(device));
    return &opened->context;
  });
}
int ibv_close_device(ibv_context* context) {
  return guarded("ibv_close_device", [&] {
    return destroy<OpenedContext>(static_cast<Context*>(verbs_get_ctx(context)));
  });
}
int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return guarded("ibv_query_device", [&] {
    *attributes = device_attributes(present(context).adapter);
    return 0;
  });
}
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes) {
  return query_port_into(context, port, attributes, kCompatPortSize);
}
int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid) {
  return guarded("ibv_query_gid", [&] {
    *gid = gid_of(present(context).adapter, port, index);
    return 0;
  });
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return guarded("ibv_alloc_pd", [&]() -> ibv_pd* { return new Pd(present(context)); });
}
int ibv_dealloc_pd(ibv_pd* pd) {
  return guarded("ibv_dealloc_pd", [&] { return destroy<Pd>(pd); });
}
ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return guarded("ibv_reg_mr", [&]() -> ibv_mr* {
    const auto iova = reinterpret_cast<uint64_t>(address);
    return new Mr(present(pd), address, length, iova, static_cast<unsigned>(access));
  });
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length, uint64_t iova, unsigned access) {
  return guarded("ibv_reg_mr_iova2",
                 [&]() -> ibv_mr* { return new Mr(present(pd), address, length, iova, access); });
}
int ibv_dereg_mr(ibv_mr* mr) {
  return guarded("ibv_dereg_mr", [&] {
    static_cast<Mr*>(mr)->check_unbound();
    return destroy<Mr>(mr);
  });
}
int ibv_fork_init(void) {
  return guarded("ibv_fork_init", [] { return init_fork(); });
}
ibv_fork_status ibv_is_fork_initialized(void) {
  return guarded("ibv_is_fork_initialized", [] { return fork_status(); });
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return guarded("ibv_create_comp_channel",
                 [&]() -> ibv_comp_channel* { return new CompChannel(present(context)); });
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return guarded("ibv_destroy_comp_channel", [&] { return destroy<CompChannel>(channel); });
}
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
  return guarded("ibv_create_cq", [&]() -> ibv_cq* {
    refuse_if(vector < 0 || vector >= context->num_comp_vectors, EINVAL);
    return new Cq(present(context), entries, cq_context, channel);
  });
}
int ibv_resize_cq(ibv_cq* cq, int entries) {
  return guarded("ibv_resize_cq", [&] {
    static_cast<Cq*>(cq)->resize(entries);
    return 0;
  });
}
int ibv_destroy_cq(ibv_cq* cq) {
  return guarded("ibv_destroy_cq", [&] { return destroy<Cq>(cq); });
}
int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  return guarded("ibv_get_cq_event", [&] {
    *cq = static_cast<CompChannel*>(channel)->events.take(
        [](ibv_cq* of) { static_cast<Cq*>(of)->comp_acknowledgements.count_fetched(); });
    *cq_context = (*cq)->cq_context;
    return 0;
  });
}
void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  guarded("ibv_ack_cq_events",
          [&] { static_cast<Cq*>(cq)->comp_acknowledgements.acknowledge(count); });
}

ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* init) {
  return guarded("ibv_create_srq", [&]() -> ibv_srq* { return new Srq(present(pd), *init); });
}
int ibv_modify_srq(ibv_srq* srq, ibv_srq_attr* attributes, int mask) {
  return guarded("ibv_modify_srq", [&] {
    static_cast<Srq*>(srq)->modify(*attributes, mask);
    return 0;
  });
}
int ibv_query_srq(ibv_srq* srq, ibv_srq_attr* attributes) {
  return guarded("ibv_query_srq", [&] {
    *attributes = static_cast<Srq*>(srq)->query();
    return 0;
  });
}
int ibv_destroy_srq(ibv_srq* srq) {
  return guarded("ibv_destroy_srq", [&] { return destroy<Srq>(srq); });
}

ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return guarded("ibv_create_qp", [&]() -> ibv_qp* {
    init->cap = checked_capacity(*init);
    return new Qp(present(pd), *init);
  });
}
int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int /*mask*/, ibv_qp_init_attr* init) {
  return guarded("ibv_query_qp", [&] {
    static_cast<Qp*>(qp)->query(*attributes, *init);
    return 0;
  });
}
int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return guarded("ibv_modify_qp", [&] {
    if ((mask & IBV_QP_STATE) != 0) static_cast<Qp*>(qp)->modify(attributes->qp_state);
    return 0;
  });
}
int ibv_destroy_qp(ibv_qp* qp) {
  return guarded("ibv_destroy_qp", [&] { return destroy<Qp>(qp); });
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return guarded("ibv_get_async_event", [&] {
    *event = context_of(context).async_events.take([](const ibv_async_event& fetched) {
      if (Acknowledgements* of = acknowledgements_of(fetched)) of->count_fetched();
    });
    return 0;
  });
}
void ibv_ack_async_event(ibv_async_event* event) {
  guarded("ibv_ack_async_event", [&] {
    if (Acknowledgements* of = acknowledgements_of(*event)) of->acknowledge(1);
  });
}
const char* ibv_wc_status_str(ibv_wc_status status) {
  return guarded("ibv_wc_status_str", [&] { return wc_status_name(status); });
}
const char* ibv_event_type_str(ibv_event_type type) {
  return guarded("ibv_event_type_str", [&] { return event_type_name(type); });
}

}  // extern "C"

namespace {

int poll_cq(ibv_cq* cq, int count, ibv_wc* completions) {
  return guarded("ibv_poll_cq", [&] { return static_cast<Cq*>(cq)->poll(count, completions); });
}
int req_notify_cq(ibv_cq* cq, int solicited_only) {
  return guarded("ibv_req_notify_cq", [&] {
    static_cast<Cq*>(cq)->arm(solicited_only != 0);
    return 0;
  });
}

/// Posting also tells which request was refused: the first one where the call itself fails.
template <class Queue, class Request, class Post>
int guarded_post(FunctionName function, Queue& queue, Request* first, Request** bad, Post post) {
  Request* refused = first;
  const int error = guarded(function, [&] { return (queue.*post)(first, &refused); });
  if (error != 0) *bad = refused;
  return error;
}
int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) {
  return guarded_post("ibv_post_send", *static_cast<Qp*>(qp), first, bad, &Qp::post_send);
}
int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return guarded_post("ibv_post_recv", *static_cast<Qp*>(qp), first, bad, &Qp::post_recv);
}
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return guarded_post("ibv_post_srq_recv", *static_cast<Srq*>(srq), first, bad, &Srq::post_recv);
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return guarded("ibv_alloc_mw", [&]() -> ibv_mw* {
    refuse_if(!able(Ability::memory_windows) || type != IBV_MW_TYPE_2, EOPNOTSUPP);
    return new Mw(present(pd));
  });
}
int dealloc_mw(ibv_mw* mw) {
  return guarded("ibv_dealloc_mw", [&] { return destroy<Mw>(mw); });
}
int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) {
  return guarded("ibv_bind_mw", [] { return EOPNOTSUPP; });  // for windows of type 1
}

}  // namespace

namespace fake {

int fake_op_query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t size) {
  return query_port_into(context, port, attributes, size);
}

ibv_context_ops operations() {
  ibv_context_ops table = {};
  table.alloc_mw = alloc_mw;
  table.bind_mw = bind_mw;
  table.dealloc_mw = dealloc_mw;
  table.poll_cq = poll_cq;
  table.req_notify_cq = req_notify_cq;
  table.post_srq_recv = post_srq_recv;
  table.post_send = post_send;
  table.post_recv = post_recv;
  return table;
}

}  // namespace fake
