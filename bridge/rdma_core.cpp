// SPDX-License-Identifier: Apache-2.0
#include "bridge/rdma_core.h"

#include <cstdlib>
#include <memory>
#include <mutex>

#include "bridge/refuse.h"
#include "bridge/sigpipe_guard.h"
#include "diwarp/error.h"

namespace diwarp::bridge {
namespace {

constexpr const char* kFolderVariable = "DIWARP_RDMA_CORE";
/// Libraries of diwarp's own with rdma-core's names export this symbol.
constexpr const char* kDropInMark = "diwarp_drop_in";

std::string folder() {
  const char* const value = std::getenv(kFolderVariable);
  return value != nullptr ? value : "";
}

/// Diwarp's own libraries are taken only where the variable names their folder.
SharedLibrary load(const std::string& folder, const char* name) {
  if (!folder.empty()) return SharedLibrary(folder + "/" + name);
  SharedLibrary library(name);
  if (library.has(kDropInMark))
    throw Error(make_error_code(Errc::unsupported_operation),
                library.path() + " is diwarp's own library, which has no hardware: set " +
                    kFolderVariable + " to the folder of rdma-core's libraries");
  return library;
}

VerbsFunctions find_verbs(const SharedLibrary& library) {
  VerbsFunctions all{};
  const auto find = [&library](auto& function, const char* name, const char* version) {
    function = library.function<std::remove_reference_t<decltype(function)>>(name, version);
  };
  find(all.get_device_list, "ibv_get_device_list", "IBVERBS_1.1");
  find(all.free_device_list, "ibv_free_device_list", "IBVERBS_1.1");
  find(all.open_device, "ibv_open_device", "IBVERBS_1.1");
  find(all.close_device, "ibv_close_device", "IBVERBS_1.1");
  find(all.query_device, "ibv_query_device", "IBVERBS_1.1");
  find(all.query_port, "ibv_query_port", "IBVERBS_1.1");
  find(all.alloc_pd, "ibv_alloc_pd", "IBVERBS_1.1");
  find(all.dealloc_pd, "ibv_dealloc_pd", "IBVERBS_1.1");
  find(all.reg_mr, "ibv_reg_mr", "IBVERBS_1.1");
  find(all.reg_mr_iova2, "ibv_reg_mr_iova2", "IBVERBS_1.8");
  find(all.dereg_mr, "ibv_dereg_mr", "IBVERBS_1.1");
  find(all.create_comp_channel, "ibv_create_comp_channel", "IBVERBS_1.0");
  find(all.destroy_comp_channel, "ibv_destroy_comp_channel", "IBVERBS_1.0");
  find(all.create_cq, "ibv_create_cq", "IBVERBS_1.1");
  find(all.destroy_cq, "ibv_destroy_cq", "IBVERBS_1.1");
  find(all.get_cq_event, "ibv_get_cq_event", "IBVERBS_1.1");
  find(all.ack_cq_events, "ibv_ack_cq_events", "IBVERBS_1.1");
  find(all.create_srq, "ibv_create_srq", "IBVERBS_1.1");
  find(all.modify_srq, "ibv_modify_srq", "IBVERBS_1.1");
  find(all.destroy_srq, "ibv_destroy_srq", "IBVERBS_1.1");
  find(all.create_qp, "ibv_create_qp", "IBVERBS_1.1");
  find(all.modify_qp, "ibv_modify_qp", "IBVERBS_1.1");
  find(all.destroy_qp, "ibv_destroy_qp", "IBVERBS_1.1");
  find(all.get_async_event, "ibv_get_async_event", "IBVERBS_1.1");
  find(all.ack_async_event, "ibv_ack_async_event", "IBVERBS_1.1");
  find(all.fork_init, "ibv_fork_init", "IBVERBS_1.1");
  find(all.is_fork_initialized, "ibv_is_fork_initialized", "IBVERBS_1.13");
  return all;
}

CmFunctions find_cm(const SharedLibrary& library) {
  CmFunctions all{};
  const auto find = [&library](auto& function, const char* name) {
    function = library.function<std::remove_reference_t<decltype(function)>>(name, "RDMACM_1.0");
  };
  find(all.create_event_channel, "rdma_create_event_channel");
  find(all.destroy_event_channel, "rdma_destroy_event_channel");
  find(all.create_id, "rdma_create_id");
  find(all.destroy_id, "rdma_destroy_id");
  find(all.bind_addr, "rdma_bind_addr");
  find(all.resolve_addr, "rdma_resolve_addr");
  find(all.resolve_route, "rdma_resolve_route");
  find(all.connect, "rdma_connect");
  find(all.listen, "rdma_listen");
  find(all.accept, "rdma_accept");
  find(all.reject, "rdma_reject");
  find(all.disconnect, "rdma_disconnect");
  find(all.get_cm_event, "rdma_get_cm_event");
  find(all.ack_cm_event, "rdma_ack_cm_event");
  return all;
}

/// Registered memory must not be copied on write when the process forks: the device would go on
/// with the pages that the child then has.
void prepare_for_fork(const VerbsFunctions& verbs) {
  if (verbs.is_fork_initialized() != IBV_FORK_DISABLED) return;
  if (verbs.fork_init() != 0)
    throw Error(make_error_code(Errc::unsupported_operation),
                "libibverbs cannot keep registered memory apart from forked children: ask for "
                "the hardware device before any other code of the process registers memory");
}

}  // namespace

RdmaCore::RdmaCore(const std::string& folder)
    : verbs_library_(load(folder, "libibverbs.so.1")),
      cm_library_(load(folder, "librdmacm.so.1")),
      verbs_(find_verbs(verbs_library_)),
      cm_(find_cm(cm_library_)) {
  prepare_for_fork(verbs_);
}

const RdmaCore& RdmaCore::loaded() {
  static std::mutex mutex;
  static const RdmaCore* both = nullptr;  // kept for ever, as the libraries are
  const std::lock_guard lock(mutex);
  if (both == nullptr) both = new RdmaCore(folder());
  return *both;
}

int modify(ibv_qp& queue_pair, const VerbsFunctions& verbs, ibv_qp_attr attributes, int mask) {
  const SigpipeGuard guard;  // siw may send a Terminate message here
  return errno_of(verbs.modify_qp(&queue_pair, &attributes, mask));
}

int enter_error(ibv_qp& queue_pair, const VerbsFunctions& verbs) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  return modify(queue_pair, verbs, attributes, IBV_QP_STATE);
}

}  // namespace diwarp::bridge
