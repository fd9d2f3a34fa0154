// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include <string>
#include <vector>

#include <diwarp/address.h>

namespace diwarp::compat {

/// The groups that an id has joined, and its queue pair with it, where it has one.
class UdGroups {
 public:
  /// `interface`: by which the group is heard; empty: the system's choice. A member that only sends
  /// is not attached. Throws Refusal(EINVAL) for a group that it is in, or that is none.
  void join(rdma_cm_id& id, const Address& group, const std::string& interface, bool receives);
  void leave(rdma_cm_id& id, const Address& group);
  void leave_all(rdma_cm_id& id);

 private:
  struct Member {
    Address group;
    std::string interface;
    ibv_qp* attached;  ///< null: it only sends, or had no queue pair
  };

  static void detach(rdma_cm_id& id, const Member& member);

  std::vector<Member> members_;
};

}  // namespace diwarp::compat
