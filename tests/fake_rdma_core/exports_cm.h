// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

/// What the fake librdmacm.so.1 calls in the fake libibverbs.so.1, where all code is: the functions
/// of librdmacm by their own types.
struct FakeCmFunctions {
  decltype(&rdma_create_event_channel) create_event_channel;
  decltype(&rdma_destroy_event_channel) destroy_event_channel;
  decltype(&rdma_create_id) create_id;
  decltype(&rdma_destroy_id) destroy_id;
  decltype(&rdma_bind_addr) bind_addr;
  decltype(&rdma_resolve_addr) resolve_addr;
  decltype(&rdma_resolve_route) resolve_route;
  decltype(&rdma_connect) connect;
  decltype(&rdma_listen) listen;
  decltype(&rdma_accept) accept;
  decltype(&rdma_reject) reject;
  decltype(&rdma_disconnect) disconnect;
  decltype(&rdma_get_cm_event) get_cm_event;
  decltype(&rdma_ack_cm_event) ack_cm_event;
  decltype(&rdma_event_str) event_str;
  decltype(&rdma_get_devices) get_devices;
  decltype(&rdma_free_devices) free_devices;
  decltype(&rdma_get_src_port) get_src_port;
  decltype(&rdma_get_dst_port) get_dst_port;
  decltype(&rdma_set_option) set_option;
};

extern "C" const FakeCmFunctions* fake_cm_functions(void);
