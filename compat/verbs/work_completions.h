// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <array>

namespace diwarp::compat {

struct CompletionOpcode {
  WcOpcode of;
  ibv_wc_opcode opcode;
};

/// What programs see of each kind of completion. Those of fast registrations do not come, as
/// nothing here posts them.
inline constexpr std::array kCompletionOpcodes{
    CompletionOpcode{WcOpcode::send, IBV_WC_SEND},
    CompletionOpcode{WcOpcode::recv, IBV_WC_RECV},
    CompletionOpcode{WcOpcode::rdma_write, IBV_WC_RDMA_WRITE},
    CompletionOpcode{WcOpcode::rdma_read, IBV_WC_RDMA_READ},
    CompletionOpcode{WcOpcode::fetch_add, IBV_WC_FETCH_ADD},
    CompletionOpcode{WcOpcode::compare_swap, IBV_WC_COMP_SWAP},
    CompletionOpcode{WcOpcode::local_invalidate, IBV_WC_LOCAL_INV},
    CompletionOpcode{WcOpcode::bind_window, IBV_WC_BIND_MW},
    CompletionOpcode{WcOpcode::write_record, IBV_WC_RDMA_WRITE},
    CompletionOpcode{WcOpcode::immediate, IBV_WC_SEND},
    CompletionOpcode{WcOpcode::recv_immediate, IBV_WC_RECV},
};

struct CompletionStatus {
  WcStatus of;
  ibv_wc_status status;
};

inline constexpr std::array kCompletionStatuses{
    CompletionStatus{WcStatus::success, IBV_WC_SUCCESS},
    CompletionStatus{WcStatus::local_length_error, IBV_WC_LOC_LEN_ERR},
    CompletionStatus{WcStatus::local_qp_operation_error, IBV_WC_LOC_QP_OP_ERR},
    CompletionStatus{WcStatus::local_protection_error, IBV_WC_LOC_PROT_ERR},
    CompletionStatus{WcStatus::wr_flush_error, IBV_WC_WR_FLUSH_ERR},
    CompletionStatus{WcStatus::general_error, IBV_WC_GENERAL_ERR},
    CompletionStatus{WcStatus::remote_access_error, IBV_WC_REM_ACCESS_ERR},
    CompletionStatus{WcStatus::remote_operation_error, IBV_WC_REM_OP_ERR},
    CompletionStatus{WcStatus::bad_response_error, IBV_WC_BAD_RESP_ERR},
    CompletionStatus{WcStatus::window_bind_error, IBV_WC_MW_BIND_ERR},
    CompletionStatus{WcStatus::timeout, IBV_WC_RESP_TIMEOUT_ERR},
    CompletionStatus{WcStatus::retry_exceeded, IBV_WC_RETRY_EXC_ERR},
    CompletionStatus{WcStatus::peer_restarted, IBV_WC_REM_ABORT_ERR},
};

ibv_wc_opcode opcode_of(WcOpcode opcode);
ibv_wc_status status_of(WcStatus status);
/// Fills all of `target`.
void translate(const WorkCompletion& completion, ibv_wc& target);

}  // namespace diwarp::compat
