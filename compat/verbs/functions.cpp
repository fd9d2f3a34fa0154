// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/functions.h"

#include "compat/common/boundary.h"
#include "compat/common/log.h"

namespace diwarp::compat {

// Refused in words.
ibv_xrcd* open_xrcd(ibv_context*, ibv_xrcd_init_attr*) {
  return or_null([]() -> ibv_xrcd* { unsupported("ibv_open_xrcd"); });
}

// What is not set here stays null: the header's inline code then gives EOPNOTSUPP.
void fill_functions(verbs_context& verbs) {
  verbs.query_port = query_port;
  verbs.query_device_ex = query_device_ex;
  verbs.create_cq_ex = create_cq_ex;
  verbs.create_qp_ex = create_qp_ex;
  verbs.create_srq_ex = create_srq_ex;
  verbs.open_xrcd = open_xrcd;
  ibv_context_ops& ops = verbs.context.ops;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  ops.post_srq_recv = post_srq_recv;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
}

}  // namespace diwarp::compat
