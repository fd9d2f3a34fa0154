// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <stdexcept>
#include <string>

#include "fake_rdma_core/control.h"

namespace fake_test {

/// The two libraries, as a program that loads them finds their functions.
class Libraries {
 public:
  /// The folder of the build that has them.
  explicit Libraries(const std::string& folder)
      : verbs_(open(folder + "/libibverbs.so.1")), cm_(open(folder + "/librdmacm.so.1")) {}

 private:
  /// The address of a function, of whatever type.
  struct Symbol {
    void* address;
    template <class Function>
    operator Function*() const {
      return reinterpret_cast<Function*>(address);
    }
  };

  static void* open(const std::string& path) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return library;
  }
  static Symbol find(void* library, const char* name, const char* version) {
    void* const address = ::dlvsym(library, name, version);
    if (address == nullptr) throw std::runtime_error(std::string("no function ") + name);
    return {address};
  }
  Symbol verbs(const char* name, const char* version = "IBVERBS_1.1") const {
    return find(verbs_, name, version);
  }
  Symbol cm(const char* name) const { return find(cm_, name, "RDMACM_1.0"); }
  Symbol control(const char* name) const { return find(verbs_, name, "FAKE_RDMA_CORE_1"); }

  void* const verbs_;
  void* const cm_;

 public:
  decltype(&ibv_get_device_list) get_device_list = verbs("ibv_get_device_list");
  decltype(&ibv_free_device_list) free_device_list = verbs("ibv_free_device_list");
  decltype(&ibv_get_device_name) get_device_name = verbs("ibv_get_device_name");
  decltype(&ibv_open_device) open_device = verbs("ibv_open_device");
  decltype(&ibv_close_device) close_device = verbs("ibv_close_device");
  decltype(&ibv_query_device) query_device = verbs("ibv_query_device");
  decltype(&ibv_query_port) query_port_short = verbs("ibv_query_port");
  decltype(&ibv_query_gid) query_gid = verbs("ibv_query_gid");
  decltype(&ibv_alloc_pd) alloc_pd = verbs("ibv_alloc_pd");
  decltype(&ibv_dealloc_pd) dealloc_pd = verbs("ibv_dealloc_pd");
  decltype(&ibv_reg_mr) reg_mr = verbs("ibv_reg_mr");
  decltype(&ibv_reg_mr_iova2) reg_mr_iova2 = verbs("ibv_reg_mr_iova2", "IBVERBS_1.8");
  decltype(&ibv_dereg_mr) dereg_mr = verbs("ibv_dereg_mr");
  decltype(&ibv_create_comp_channel) create_comp_channel =
      verbs("ibv_create_comp_channel", "IBVERBS_1.0");
  decltype(&ibv_destroy_comp_channel) destroy_comp_channel =
      verbs("ibv_destroy_comp_channel", "IBVERBS_1.0");
  decltype(&ibv_create_cq) create_cq = verbs("ibv_create_cq");
  decltype(&ibv_resize_cq) resize_cq = verbs("ibv_resize_cq");
  decltype(&ibv_destroy_cq) destroy_cq = verbs("ibv_destroy_cq");
  decltype(&ibv_get_cq_event) get_cq_event = verbs("ibv_get_cq_event");
  decltype(&ibv_ack_cq_events) ack_cq_events = verbs("ibv_ack_cq_events");
  decltype(&ibv_create_srq) create_srq = verbs("ibv_create_srq");
  decltype(&ibv_modify_srq) modify_srq = verbs("ibv_modify_srq");
  decltype(&ibv_query_srq) query_srq = verbs("ibv_query_srq");
  decltype(&ibv_destroy_srq) destroy_srq = verbs("ibv_destroy_srq");
  decltype(&ibv_create_qp) create_qp = verbs("ibv_create_qp");
  decltype(&ibv_query_qp) query_qp = verbs("ibv_query_qp");
  decltype(&ibv_modify_qp) modify_qp = verbs("ibv_modify_qp");
  decltype(&ibv_destroy_qp) destroy_qp = verbs("ibv_destroy_qp");
  decltype(&ibv_get_async_event) get_async_event = verbs("ibv_get_async_event");
  decltype(&ibv_ack_async_event) ack_async_event = verbs("ibv_ack_async_event");
  decltype(&ibv_fork_init) fork_init = verbs("ibv_fork_init");
  decltype(&ibv_is_fork_initialized) is_fork_initialized =
      verbs("ibv_is_fork_initialized", "IBVERBS_1.13");
  decltype(&ibv_wc_status_str) wc_status_str = verbs("ibv_wc_status_str");

  decltype(&rdma_create_event_channel) create_event_channel = cm("rdma_create_event_channel");
  decltype(&rdma_destroy_event_channel) destroy_event_channel = cm("rdma_destroy_event_channel");
  decltype(&rdma_create_id) create_id = cm("rdma_create_id");
  decltype(&rdma_destroy_id) destroy_id = cm("rdma_destroy_id");
  decltype(&rdma_bind_addr) bind_addr = cm("rdma_bind_addr");
  decltype(&rdma_resolve_addr) resolve_addr = cm("rdma_resolve_addr");
  decltype(&rdma_resolve_route) resolve_route = cm("rdma_resolve_route");
  decltype(&rdma_connect) connect = cm("rdma_connect");
  decltype(&rdma_listen) listen = cm("rdma_listen");
  decltype(&rdma_accept) accept = cm("rdma_accept");
  decltype(&rdma_reject) reject = cm("rdma_reject");
  decltype(&rdma_disconnect) disconnect = cm("rdma_disconnect");
  decltype(&rdma_get_cm_event) get_cm_event = cm("rdma_get_cm_event");
  decltype(&rdma_ack_cm_event) ack_cm_event = cm("rdma_ack_cm_event");
  decltype(&rdma_event_str) event_str = cm("rdma_event_str");
  decltype(&rdma_get_devices) get_devices = cm("rdma_get_devices");
  decltype(&rdma_free_devices) free_devices = cm("rdma_free_devices");
  decltype(&rdma_get_src_port) get_src_port = cm("rdma_get_src_port");

  decltype(&fake_fail) fail = control("fake_fail");
  decltype(&fake_calls) calls = control("fake_calls");
  decltype(&fake_clear) clear = control("fake_clear");
  decltype(&fake_choose_key) choose_key = control("fake_choose_key");
  decltype(&fake_deny) deny = control("fake_deny");
  decltype(&fake_raise) raise = control("fake_raise");
  decltype(&fake_remove) remove = control("fake_remove");
  decltype(&fake_objects) objects = control("fake_objects");
};

}  // namespace fake_test
