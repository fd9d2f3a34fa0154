// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/work_completions.h"

#include <endian.h>

#include "fake_rdma_core/capabilities.h"

namespace fake {
namespace {

using diwarp::WcOpcode;
using diwarp::WcStatus;

/// For fields that mean nothing: a program that reads them should notice.
constexpr auto kMeaninglessOpcode = static_cast<ibv_wc_opcode>(0x7f);
constexpr uint32_t kMeaninglessNumber = 0xdead;

ibv_wc_status status_of(WcStatus status) {
  switch (status) {
    case WcStatus::success:
      return IBV_WC_SUCCESS;
    case WcStatus::local_length_error:
      return IBV_WC_LOC_LEN_ERR;
    case WcStatus::local_qp_operation_error:
      return IBV_WC_LOC_QP_OP_ERR;
    case WcStatus::local_protection_error:
      return IBV_WC_LOC_PROT_ERR;
    case WcStatus::wr_flush_error:
      return IBV_WC_WR_FLUSH_ERR;
    case WcStatus::remote_access_error:
      return able(Ability::remote_errors) ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR;
    case WcStatus::remote_operation_error:
      return able(Ability::remote_errors) ? IBV_WC_REM_OP_ERR : IBV_WC_WR_FLUSH_ERR;
    case WcStatus::bad_response_error:
      return IBV_WC_BAD_RESP_ERR;
    case WcStatus::window_bind_error:
      return IBV_WC_MW_BIND_ERR;
    default:
      return IBV_WC_GENERAL_ERR;
  }
}

/// As status_of(), where the device has no better names for errors.
ibv_wc_status coarse_status_of(const diwarp::WorkCompletion& completion) {
  const ibv_wc_status status = status_of(completion.status);
  const bool local = status == IBV_WC_LOC_PROT_ERR || status == IBV_WC_MW_BIND_ERR;
  const bool coarse = local && !is_receive(completion) && !able(Ability::local_errors);
  return coarse ? IBV_WC_LOC_QP_OP_ERR : status;
}

ibv_wc_opcode opcode_of(WcOpcode opcode) {
  switch (opcode) {
    case WcOpcode::recv:
    case WcOpcode::recv_immediate:
      return IBV_WC_RECV;
    case WcOpcode::rdma_write:
      return IBV_WC_RDMA_WRITE;
    case WcOpcode::rdma_read:
      return IBV_WC_RDMA_READ;
    case WcOpcode::fetch_add:
      return IBV_WC_FETCH_ADD;
    case WcOpcode::compare_swap:
      return IBV_WC_COMP_SWAP;
    case WcOpcode::local_invalidate:
      return IBV_WC_LOCAL_INV;
    case WcOpcode::bind_window:
      return IBV_WC_BIND_MW;
    default:
      return IBV_WC_SEND;
  }
}

uint32_t length_of(const diwarp::WorkCompletion& completion) {
  switch (completion.opcode) {
    case WcOpcode::recv:
    case WcOpcode::rdma_read:
      return completion.byte_count;
    case WcOpcode::fetch_add:
    case WcOpcode::compare_swap:
      return sizeof(uint64_t);
    default:
      return 0;
  }
}

void fill_good(ibv_wc& wc, const diwarp::WorkCompletion& completion) {
  wc.opcode = opcode_of(completion.opcode);
  wc.byte_len = length_of(completion);
  if (completion.opcode == WcOpcode::recv_immediate) {
    wc.wc_flags = IBV_WC_WITH_IMM;
    wc.imm_data = htobe32(static_cast<uint32_t>(completion.immediate));
  } else if (completion.invalidated && able(Ability::told_invalidations)) {
    wc.wc_flags = IBV_WC_WITH_INV;
    wc.invalidated_rkey = completion.invalidated_stag;
  }
}

}  // namespace

bool is_receive(const diwarp::WorkCompletion& completion) {
  return completion.opcode == WcOpcode::recv || completion.opcode == WcOpcode::recv_immediate;
}

ibv_wc work_completion(const diwarp::WorkCompletion& completion) {
  ibv_wc wc = {};
  wc.wr_id = completion.wr_id;
  wc.status = coarse_status_of(completion);
  wc.qp_num = completion.qp_number;
  wc.vendor_err = completion.vendor_error;
  if (wc.status == IBV_WC_SUCCESS) {
    fill_good(wc, completion);
  } else {
    wc.opcode = kMeaninglessOpcode;
    wc.byte_len = kMeaninglessNumber;
    wc.wc_flags = kMeaninglessNumber;
  }
  return wc;
}

}  // namespace fake
