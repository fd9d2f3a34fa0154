// SPDX-License-Identifier: Apache-2.0
#include "diwarp/types.h"

namespace diwarp {

// No default cases: the compiler names the enumerator that was forgotten here.

std::string_view to_string(QpType type) {
  switch (type) {
    case QpType::rc:
      return "rc";
    case QpType::ud:
      return "ud";
    case QpType::rd:
      return "rd";
  }
  return "unknown";
}

std::string_view to_string(QpState state) {
  switch (state) {
    case QpState::reset:
      return "reset";
    case QpState::init:
      return "init";
    case QpState::rtr:
      return "rtr";
    case QpState::rts:
      return "rts";
    case QpState::sqd:
      return "sqd";
    case QpState::closing:
      return "closing";
    case QpState::error:
      return "error";
  }
  return "unknown";
}

std::string_view to_string(WcStatus status) {
  switch (status) {
    case WcStatus::success:
      return "success";
    case WcStatus::local_length_error:
      return "local length error";
    case WcStatus::local_qp_operation_error:
      return "local QP operation error";
    case WcStatus::local_protection_error:
      return "local protection error";
    case WcStatus::wr_flush_error:
      return "work request flushed";
    case WcStatus::general_error:
      return "general error";
    case WcStatus::remote_access_error:
      return "remote access error";
    case WcStatus::remote_operation_error:
      return "remote operation error";
    case WcStatus::bad_response_error:
      return "bad response";
    case WcStatus::window_bind_error:
      return "memory could not be bound or invalidated";
    case WcStatus::timeout:
      return "timed out";
    case WcStatus::retry_exceeded:
      return "peer does not answer";
    case WcStatus::peer_restarted:
      return "peer was restarted";
  }
  return "unknown";
}

std::string_view to_string(WcOpcode opcode) {
  switch (opcode) {
    case WcOpcode::send:
      return "send";
    case WcOpcode::recv:
      return "recv";
    case WcOpcode::rdma_write:
      return "rdma_write";
    case WcOpcode::rdma_read:
      return "rdma_read";
    case WcOpcode::fetch_add:
      return "fetch_add";
    case WcOpcode::compare_swap:
      return "compare_swap";
    case WcOpcode::swap:
      return "swap";
    case WcOpcode::local_invalidate:
      return "local_invalidate";
    case WcOpcode::bind_window:
      return "bind_window";
    case WcOpcode::register_memory:
      return "register_memory";
    case WcOpcode::immediate:
      return "immediate";
    case WcOpcode::recv_immediate:
      return "recv_immediate";
    case WcOpcode::write_record:
      return "write_record";
    case WcOpcode::recv_write_record:
      return "recv_write_record";
  }
  return "unknown";
}

std::string_view to_string(WrOpcode opcode) {
  switch (opcode) {
    case WrOpcode::send:
      return "send";
    case WrOpcode::send_with_invalidate:
      return "send_with_invalidate";
    case WrOpcode::rdma_write:
      return "rdma_write";
    case WrOpcode::rdma_read:
      return "rdma_read";
    case WrOpcode::rdma_read_with_invalidate:
      return "rdma_read_with_invalidate";
    case WrOpcode::immediate:
      return "immediate";
    case WrOpcode::fetch_add:
      return "fetch_add";
    case WrOpcode::compare_swap:
      return "compare_swap";
    case WrOpcode::swap:
      return "swap";
    case WrOpcode::local_invalidate:
      return "local_invalidate";
    case WrOpcode::bind_window:
      return "bind_window";
    case WrOpcode::register_memory:
      return "register_memory";
    case WrOpcode::write_record:
      return "write_record";
  }
  return "unknown";
}

}  // namespace diwarp
