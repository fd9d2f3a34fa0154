// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

/// What ids own beside their connections. All throw Refusal.
namespace diwarp::compat {

/// Makes the id's queue pair, in init, and the completion queues that `init` does not name.
void create_queue_pair(rdma_cm_id& id, ibv_qp_init_attr_ex& init);
void create_queue_pair(rdma_cm_id& id, ibv_pd* pd, ibv_qp_init_attr& init);
void destroy_queue_pair(rdma_cm_id& id);
void destroy_shared_queue(rdma_cm_id& id);

}  // namespace diwarp::compat
