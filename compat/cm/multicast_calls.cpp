// SPDX-License-Identifier: Apache-2.0
// The functions of librdmacm about groups.
#include <cerrno>

#include "compat/cm/id.h"
#include "compat/cm/ud_id.h"
#include "compat/common/addresses.h"
#include "compat/common/boundary.h"
#include "compat/common/export.h"

using namespace diwarp::compat;  // NOLINT: the whole file is the outer face

namespace {

UdId& datagram_of(rdma_cm_id* id) {
  UdId* const found = id_of(id).datagram();
  refuse_if(found == nullptr, EINVAL);
  return *found;
}

void join(rdma_cm_id* id, const sockaddr* group, void* context, bool receives) {
  refuse_if(length_of(group) == 0, EINVAL);
  datagram_of(id).join(address_of(group), context, receives);
  id_of(id).complete();
}

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT int rdma_join_multicast(rdma_cm_id* id, sockaddr* group, void* context) {
  return minus_one([&] { join(id, group, context, true); });
}

DIWARP_COMPAT_EXPORT int rdma_join_multicast_ex(rdma_cm_id* id, rdma_cm_join_mc_attr_ex* attributes,
                                                void* context) {
  return minus_one([&] {
    constexpr uint32_t kNeeded = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
    refuse_if(attributes->comp_mask != kNeeded, EINVAL);
    refuse_if(attributes->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED, EINVAL);
    join(id, attributes->addr, context, attributes->join_flags == RDMA_MC_JOIN_FLAG_FULLMEMBER);
  });
}

DIWARP_COMPAT_EXPORT int rdma_leave_multicast(rdma_cm_id* id, sockaddr* group) {
  return minus_one([&] {
    refuse_if(length_of(group) == 0, EINVAL);
    datagram_of(id).leave(address_of(group));
  });
}

}  // extern "C"
