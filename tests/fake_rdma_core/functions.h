// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

/// The table of the functions that the two libraries have: their names, and how they tell errors.
/// Counting and failing calls (injection.h) rest on it.
namespace fake {

/// What a function that failed returns. A function that returns a pointer returns null.
enum class OnError : unsigned char {
  code,       ///< the errno
  minus_one,  ///< -1, and errno is set
  zero,       ///< 0, and errno is set
  nothing,    ///< the function cannot fail
};

struct FunctionRow {
  std::string_view name;
  OnError on_error;
};

/// The functions of the context's table of operations stand here by the names of their inline
/// callers in verbs.h.
inline constexpr std::array kFunctions = {
    FunctionRow{"ibv_get_device_list", OnError::zero},
    FunctionRow{"ibv_free_device_list", OnError::nothing},
    FunctionRow{"ibv_get_device_name", OnError::zero},
    FunctionRow{"ibv_get_device_guid", OnError::zero},
    FunctionRow{"ibv_node_type_str", OnError::zero},
    FunctionRow{"ibv_open_device", OnError::zero},
    FunctionRow{"ibv_close_device", OnError::minus_one},
    FunctionRow{"ibv_query_device", OnError::code},
    FunctionRow{"ibv_query_port", OnError::code},
    FunctionRow{"ibv_query_gid", OnError::minus_one},
    FunctionRow{"ibv_alloc_pd", OnError::zero},
    FunctionRow{"ibv_dealloc_pd", OnError::code},
    FunctionRow{"ibv_reg_mr", OnError::zero},
    FunctionRow{"ibv_reg_mr_iova2", OnError::zero},
    FunctionRow{"ibv_dereg_mr", OnError::code},
    FunctionRow{"ibv_create_comp_channel", OnError::zero},
    FunctionRow{"ibv_destroy_comp_channel", OnError::code},
    FunctionRow{"ibv_create_cq", OnError::zero},
    FunctionRow{"ibv_resize_cq", OnError::code},
    FunctionRow{"ibv_destroy_cq", OnError::code},
    FunctionRow{"ibv_get_cq_event", OnError::minus_one},
    FunctionRow{"ibv_ack_cq_events", OnError::nothing},
    FunctionRow{"ibv_create_srq", OnError::zero},
    FunctionRow{"ibv_modify_srq", OnError::code},
    FunctionRow{"ibv_query_srq", OnError::code},
    FunctionRow{"ibv_destroy_srq", OnError::code},
    FunctionRow{"ibv_create_qp", OnError::zero},
    FunctionRow{"ibv_query_qp", OnError::code},
    FunctionRow{"ibv_modify_qp", OnError::code},
    FunctionRow{"ibv_destroy_qp", OnError::code},
    FunctionRow{"ibv_get_async_event", OnError::minus_one},
    FunctionRow{"ibv_ack_async_event", OnError::nothing},
    FunctionRow{"ibv_fork_init", OnError::code},
    FunctionRow{"ibv_is_fork_initialized", OnError::zero},
    FunctionRow{"ibv_wc_status_str", OnError::zero},
    FunctionRow{"ibv_event_type_str", OnError::zero},
    FunctionRow{"ibv_poll_cq", OnError::minus_one},
    FunctionRow{"ibv_req_notify_cq", OnError::code},
    FunctionRow{"ibv_post_send", OnError::code},
    FunctionRow{"ibv_post_recv", OnError::code},
    FunctionRow{"ibv_post_srq_recv", OnError::code},
    FunctionRow{"ibv_alloc_mw", OnError::zero},
    FunctionRow{"ibv_dealloc_mw", OnError::code},
    FunctionRow{"ibv_bind_mw", OnError::code},
    FunctionRow{"rdma_create_event_channel", OnError::zero},
    FunctionRow{"rdma_destroy_event_channel", OnError::nothing},
    FunctionRow{"rdma_create_id", OnError::minus_one},
    FunctionRow{"rdma_destroy_id", OnError::minus_one},
    FunctionRow{"rdma_bind_addr", OnError::minus_one},
    FunctionRow{"rdma_resolve_addr", OnError::minus_one},
    FunctionRow{"rdma_resolve_route", OnError::minus_one},
    FunctionRow{"rdma_connect", OnError::minus_one},
    FunctionRow{"rdma_listen", OnError::minus_one},
    FunctionRow{"rdma_accept", OnError::minus_one},
    FunctionRow{"rdma_reject", OnError::minus_one},
    FunctionRow{"rdma_disconnect", OnError::minus_one},
    FunctionRow{"rdma_get_cm_event", OnError::minus_one},
    FunctionRow{"rdma_ack_cm_event", OnError::minus_one},
    FunctionRow{"rdma_event_str", OnError::zero},
    FunctionRow{"rdma_get_devices", OnError::zero},
    FunctionRow{"rdma_free_devices", OnError::nothing},
    FunctionRow{"rdma_get_src_port", OnError::zero},
    FunctionRow{"rdma_get_dst_port", OnError::zero},
    FunctionRow{"rdma_set_option", OnError::minus_one},
};

/// The row of a name; kFunctions.size() where there is none.
constexpr size_t function_row(std::string_view name) {
  size_t row = 0;
  while (row < kFunctions.size() && kFunctions[row].name != name) ++row;
  return row;
}

/// A name in the table. A name that is not there does not compile.
struct FunctionName {
  size_t row;
  consteval FunctionName(const char* name) : row(function_row(name)) {  // NOLINT: meant to convert
    if (row == kFunctions.size()) throw "no such function";
  }
};

}  // namespace fake
