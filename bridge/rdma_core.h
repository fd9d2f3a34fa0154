// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <string>

#include "bridge/shared_library.h"

namespace diwarp::bridge {

/// The functions of libibverbs that the bridge calls. What the headers define inline calls these,
/// or goes through the operations of a context, as posting and polling do.
struct VerbsFunctions {
  decltype(&::ibv_get_device_list) get_device_list;
  decltype(&::ibv_free_device_list) free_device_list;
  decltype(&::ibv_open_device) open_device;
  decltype(&::ibv_close_device) close_device;
  decltype(&::ibv_query_device) query_device;
  decltype(&::ibv_query_port) query_port;  // takes a shorter structure than the operation
  decltype(&::ibv_alloc_pd) alloc_pd;
  decltype(&::ibv_dealloc_pd) dealloc_pd;
  decltype(&::ibv_reg_mr) reg_mr;
  decltype(&::ibv_reg_mr_iova2) reg_mr_iova2;
  decltype(&::ibv_dereg_mr) dereg_mr;
  decltype(&::ibv_create_comp_channel) create_comp_channel;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel;
  decltype(&::ibv_create_cq) create_cq;
  decltype(&::ibv_destroy_cq) destroy_cq;
  decltype(&::ibv_get_cq_event) get_cq_event;
  decltype(&::ibv_ack_cq_events) ack_cq_events;
  decltype(&::ibv_create_srq) create_srq;
  decltype(&::ibv_modify_srq) modify_srq;
  decltype(&::ibv_destroy_srq) destroy_srq;
  decltype(&::ibv_create_qp) create_qp;
  decltype(&::ibv_modify_qp) modify_qp;
  decltype(&::ibv_destroy_qp) destroy_qp;
  decltype(&::ibv_get_async_event) get_async_event;
  decltype(&::ibv_ack_async_event) ack_async_event;
  decltype(&::ibv_fork_init) fork_init;
  decltype(&::ibv_is_fork_initialized) is_fork_initialized;
};

/// The functions of librdmacm that the bridge calls.
struct CmFunctions {
  decltype(&::rdma_create_event_channel) create_event_channel;
  decltype(&::rdma_destroy_event_channel) destroy_event_channel;
  decltype(&::rdma_create_id) create_id;
  decltype(&::rdma_destroy_id) destroy_id;
  decltype(&::rdma_bind_addr) bind_addr;
  decltype(&::rdma_resolve_addr) resolve_addr;
  decltype(&::rdma_resolve_route) resolve_route;
  decltype(&::rdma_connect) connect;
  decltype(&::rdma_listen) listen;
  decltype(&::rdma_accept) accept;
  decltype(&::rdma_reject) reject;
  decltype(&::rdma_disconnect) disconnect;
  decltype(&::rdma_get_cm_event) get_cm_event;
  decltype(&::rdma_ack_cm_event) ack_cm_event;
};

/// Changes a queue pair's attributes that the mask names. Returns an errno, 0 for none.
int modify(ibv_qp& queue_pair, const VerbsFunctions& verbs, ibv_qp_attr attributes, int mask);
/// Moves a queue pair to error. Returns an errno, 0 for none.
int enter_error(ibv_qp& queue_pair, const VerbsFunctions& verbs);

/// Both libraries, loaded.
class RdmaCore {
 public:
  /// Loads them when it is first called: from the folder that the environment variable
  /// DIWARP_RDMA_CORE names, else the system's. Throws Error(unsupported_operation) with a
  /// sentence about what is missing; the next call tries again.
  static const RdmaCore& loaded();

  const VerbsFunctions& verbs() const { return verbs_; }
  const CmFunctions& cm() const { return cm_; }
  std::string verbs_file() const { return verbs_library_.file_with_version(); }
  std::string cm_file() const { return cm_library_.file_with_version(); }

 private:
  explicit RdmaCore(const std::string& folder);

  SharedLibrary verbs_library_;
  SharedLibrary cm_library_;  // after libibverbs, which it needs
  VerbsFunctions verbs_;
  CmFunctions cm_;
};

}  // namespace diwarp::bridge
