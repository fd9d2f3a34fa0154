// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_groups.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "compat/common/boundary.h"
#include "compat/common/error.h"
#include "compat/verbs/for_cm.h"

namespace diwarp::compat {

void UdGroups::join(rdma_cm_id& id, const Address& group, const std::string& interface,
                    bool receives) {
  const bool member = std::any_of(members_.begin(), members_.end(),
                                  [&](const Member& one) { return one.group == group; });
  refuse_if(!group.is_multicast() || member, EINVAL);
  ibv_qp* const attached = receives ? id.qp : nullptr;
  if (attached != nullptr) shared::join(attached, group, interface);
  members_.push_back({group, interface, attached});
}

void UdGroups::leave(rdma_cm_id& id, const Address& group) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member& one) { return one.group == group; });
  refuse_if(found == members_.end(), EADDRNOTAVAIL);
  detach(id, *found);
  members_.erase(found);
}

/// A queue pair that the program has destroyed meanwhile, or led out by itself, has left by that.
void UdGroups::leave_all(rdma_cm_id& id) {
  for (const Member& one : std::exchange(members_, {})) quietly([&] { detach(id, one); });
}

void UdGroups::detach(rdma_cm_id& id, const Member& member) {
  if (member.attached != nullptr && member.attached == id.qp)
    shared::leave(member.attached, member.group, member.interface);
}

}  // namespace diwarp::compat
