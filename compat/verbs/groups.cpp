// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/groups.h"

#include <cerrno>

#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/log.h"
#include "compat/verbs/ud_queue_pair.h"

namespace diwarp::compat {

UdQp& group_member(ibv_qp* qp) {
  Qp& given = qp_of(qp);
  refuse_if(given.qp_base.qp_type != IBV_QPT_UD, EINVAL);
  if (given.queue_pair().query().type == QpType::rd) unsupported("a group with --ud reliable");
  return static_cast<UdQp&>(given);
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

namespace {

diwarp::Address group_of(const ibv_gid* gid) {
  refuse_if(gid == nullptr, EINVAL);
  const diwarp::Address group = address_of_gid(gid->raw);
  refuse_if(!group.is_multicast(), EINVAL);
  return group.with_port(kGroupPort);
}

}  // namespace

extern "C" {

/// Between Ethernet ports there are no LIDs.
DIWARP_COMPAT_EXPORT int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return errno_value([&] { group_member(qp).join(group_of(gid)); });
}

DIWARP_COMPAT_EXPORT int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  return errno_value([&] { group_member(qp).leave(group_of(gid)); });
}

}  // extern "C"
