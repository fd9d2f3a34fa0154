// SPDX-License-Identifier: Apache-2.0
// The functions of libibverbs about queue pairs.
#include <cerrno>
#include <memory>
#include <string>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/functions.h"
#include "compat/verbs/rc_queue_pair.h"
#include "compat/verbs/ud_queue_pair.h"

namespace diwarp::compat {

/// `*bad` is written only where a request is refused.
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad) {
  ibv_send_wr* at = request;
  const int code = errno_value([&] { qp_of(qp).post_sends(request, &at); });
  if (code != 0) *bad = at;
  return code;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad) {
  ibv_recv_wr* at = request;
  const int code = errno_value([&] { qp_of(qp).post_receives(request, &at); });
  if (code != 0) *bad = at;
  return code;
}

namespace {

/// What can be asked for, with values that ask for nothing.
void check_extensions(const ibv_qp_init_attr_ex& init) {
  constexpr uint32_t kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                              IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  const bool flags =
      (init.comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && init.create_flags != 0;
  const bool segments =
      (init.comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER) != 0 && init.max_tso_header != 0;
  if ((init.comp_mask & ~kKnown) != 0 || flags || segments)
    unsupported("ibv_create_qp_ex with extensions");
}

std::unique_ptr<Qp> made(Pd& domain, ibv_qp_init_attr& init, Meets meets,
                         const std::string& group_interface) {
  if (init.qp_type == IBV_QPT_UD)
    return std::make_unique<UdQp>(domain, init, meets, group_interface);
  return std::make_unique<RcQp>(domain, init, meets);
}

/// In the kernel each context has its objects for itself.
void check_context(const ibv_context& context, const ibv_qp_init_attr& init) {
  const auto other = [&](const auto* object) {
    return object != nullptr && object->context != &context;
  };
  refuse_if(other(init.send_cq) || other(init.recv_cq) || other(init.srq), EINVAL);
}

/// Its functions are filled in for `operations`, if they are not null.
ibv_qp* create(Pd& domain, ibv_qp_init_attr& init, const uint64_t* operations, Meets meets,
               const std::string& group_interface) {
  check_context(*domain.context, init);
  auto qp = made(domain, init, meets, group_interface);
  if (operations != nullptr) qp->extend(*operations);
  LiveObjects<Qp>::add(qp.get());
  return qp.release()->handle();
}

}  // namespace

ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* init) {
  return or_null([&] { return create_queue_pair(*context, *init, Meets::by_name); });
}

ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init, Meets meets,
                          const std::string& group_interface) {
  refuse_if((init.comp_mask & IBV_QP_INIT_ATTR_PD) == 0 || init.pd == nullptr ||
                init.pd->context != &context,
            EINVAL);
  check_extensions(init);
  const bool extended = (init.comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  // The longer structure begins as the shorter one does.
  return create(pd_of(init.pd), reinterpret_cast<ibv_qp_init_attr&>(init),
                extended ? &init.send_ops_flags : nullptr, meets, group_interface);
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* init) {
  return or_null([&] { return create(pd_of(pd), *init, nullptr, Meets::by_name, {}); });
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
    LiveObjects<Qp>::take(given, [](Qp& one) { one.check_unused(); });
    const std::unique_ptr<Qp> ended(given);
    if (ended->domain().engine().of_this_process()) ended->finish_sends();
  });
}

DIWARP_COMPAT_EXPORT int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, uint32_t) { return 0; }

}  // extern "C"
