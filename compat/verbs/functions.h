// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

/// The functions that programs reach through a context, and not by name.
namespace diwarp::compat {

void fill_functions(verbs_context& verbs);

int query_port(ibv_context* context, uint8_t port, ibv_port_attr* attributes, size_t size);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input,
                    ibv_device_attr_ex* attributes, size_t size);

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init);
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
int req_notify_cq(ibv_cq* cq, int solicited_only);

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init);
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);

ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* init);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);

ibv_xrcd* open_xrcd(ibv_context* context, ibv_xrcd_init_attr* init);

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* binding);
int dealloc_mw(ibv_mw* mw);

}  // namespace diwarp::compat
