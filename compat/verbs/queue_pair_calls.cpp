// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs about queue pairs.
#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/functions.h"
#include "compat/verbs/queue_pair.h"

namespace diwarp::compat {

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  return errno_value([&] { qp_of(qp).post_sends(request, bad); });
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return errno_value([&] { qp_of(qp).post_receives(request, bad); });
}

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  return or_null([&] {
    refuse_if((init->comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || init->pd == nullptr ||
                  init->pd->context != context,
              EINVAL);
    if (init->comp_mask != IBV_QP_INIT_ATTR_PD) unsupported("ibv_create_qp_ex with extensions");
    // The longer structure begins as the shorter one does.
    return ibv_create_qp(init->pd, reinterpret_cast<ibv_qp_init_attr*>(init));
  });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return or_null([&] {
    auto* const made = new Qp(pd_of(pd), *init, Qp::Meets::by_name);
    LiveObjects<Qp>::add(made);
    return made->handle();
  });
}

DIWARP_COMPAT_EXPORT int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  return errno_value([&] { qp_of(qp).modify(*attributes, mask); });
}

DIWARP_COMPAT_EXPORT int ibv_query_qp(ibv_qp* qp, ibv_qp_attr* attributes, int,
                                      ibv_qp_init_attr* init) {
  return errno_value([&] { qp_of(qp).query(*attributes, *init); });
}

DIWARP_COMPAT_EXPORT int ibv_destroy_qp(ibv_qp* qp) {
  return errno_value([&] {
    Qp* const given = &qp_of(qp);
    LiveObjects<Qp>::take(given);
    delete given;
  });
}

/// No queue pair here has the newer way of posting yet.
DIWARP_COMPAT_EXPORT ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp*) { return nullptr; }

DIWARP_COMPAT_EXPORT int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

}  // extern "C"
