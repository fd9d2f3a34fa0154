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

}  // namespace diwarp
