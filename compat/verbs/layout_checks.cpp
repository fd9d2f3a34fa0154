// SPDX-License-Identifier: Apache-2.0
// What programs read at fixed places, checked against the header that this is built with, and
// against the newest layout: both have these, unless two values stand in a row.
#include <infiniband/verbs.h>

#include <cstddef>

#include "compat/verbs/context.h"
#include "compat/verbs/device.h"

namespace diwarp::compat {
namespace {

#ifdef __LP64__

/// From a field of verbs_context to its end, which is where ibv_context ends, too.
#define DIWARP_TO_CONTEXT(field) (offsetof(verbs_context, context) - offsetof(verbs_context, field))

static_assert(sizeof(ibv_context) == 328);
static_assert(offsetof(ibv_context, ops) == 8);
static_assert(offsetof(ibv_context, cmd_fd) == 264);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, num_comp_vectors) == 272);
static_assert(offsetof(ibv_context, mutex) == 280);
static_assert(offsetof(ibv_context, abi_compat) == 320);
static_assert(offsetof(ibv_context, ops.alloc_mw) == 8 + 56);
static_assert(offsetof(ibv_context, ops.bind_mw) == 8 + 64);
static_assert(offsetof(ibv_context, ops.dealloc_mw) == 8 + 72);
static_assert(offsetof(ibv_context, ops.poll_cq) == 8 + 88);
static_assert(offsetof(ibv_context, ops.req_notify_cq) == 8 + 96);
static_assert(offsetof(ibv_context, ops.post_srq_recv) == 8 + 160);
static_assert(offsetof(ibv_context, ops.post_send) == 8 + 200);
static_assert(offsetof(ibv_context, ops.post_recv) == 8 + 208);

static_assert(DIWARP_TO_CONTEXT(sz) == 8);
static_assert(DIWARP_TO_CONTEXT(close_xrcd) == 24);
static_assert(DIWARP_TO_CONTEXT(open_xrcd) == 32);
static_assert(DIWARP_TO_CONTEXT(create_srq_ex) == 40);
static_assert(DIWARP_TO_CONTEXT(get_srq_num) == 48);
static_assert(DIWARP_TO_CONTEXT(create_qp_ex) == 56);
static_assert(DIWARP_TO_CONTEXT(ibv_create_flow) == 80);
static_assert(DIWARP_TO_CONTEXT(query_device_ex) == 104);
static_assert(DIWARP_TO_CONTEXT(create_cq_ex) == 120);
static_assert(DIWARP_TO_CONTEXT(query_port) == 320);

constexpr size_t kNewestContext = 696;
static_assert(offsetof(ContextBlock, verbs) + sizeof(verbs_context) == kNewestContext);

static_assert(sizeof(ibv_device) == 664);
static_assert(offsetof(ibv_device, node_type) == 16);
static_assert(offsetof(ibv_device, transport_type) == 20);
static_assert(offsetof(ibv_device, name) == 24);
static_assert(offsetof(ibv_device, dev_name) == 88);
static_assert(offsetof(ibv_device, dev_path) == 152);
static_assert(offsetof(ibv_device, ibdev_path) == 408);
constexpr size_t kProvidersDevice = 712;
static_assert(sizeof(DeviceBlock) >= kProvidersDevice);

static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_mr) == 48);
static_assert(offsetof(ibv_mr, lkey) == 36 && offsetof(ibv_mr, rkey) == 40);
static_assert(sizeof(ibv_cq) == 128);
static_assert(sizeof(ibv_cq_ex) == 288);
static_assert(offsetof(ibv_cq, async_events_completed) ==
              offsetof(ibv_cq_ex, async_events_completed));
static_assert(sizeof(ibv_qp) == 160);
static_assert(offsetof(ibv_qp, qp_num) == 52 && offsetof(ibv_qp, state) == 56);
static_assert(sizeof(ibv_qp_ex) == 352 || sizeof(ibv_qp_ex) == 360);
static_assert(sizeof(ibv_srq) == 128);
static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(offsetof(ibv_comp_channel, fd) == 8 && offsetof(ibv_comp_channel, refcnt) == 12);
static_assert(sizeof(ibv_wc) == 48);
static_assert(sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_sge) == 16);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(ibv_port_attr) == 52 || sizeof(ibv_port_attr) == 56);
static_assert(sizeof(ibv_gid_entry) == 32);

#endif

}  // namespace
}  // namespace diwarp::compat
