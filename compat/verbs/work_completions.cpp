// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/work_completions.h"

#include <endian.h>

namespace diwarp::compat {

ibv_wc_opcode opcode_of(WcOpcode opcode) {
  for (const CompletionOpcode& one : kCompletionOpcodes)
    if (one.of == opcode) return one.opcode;
  return IBV_WC_DRIVER1;
}

ibv_wc_status status_of(WcStatus status) {
  for (const CompletionStatus& one : kCompletionStatuses)
    if (one.of == status) return one.status;
  return IBV_WC_GENERAL_ERR;
}

namespace {

/// Of a message that came over datagrams. Its receive begins with a Global Route Header.
void add_origin(const WorkCompletion& completion, ibv_wc& target) {
  target.src_qp = completion.source.port();
  target.wc_flags = IBV_WC_GRH;
  if (!completion.has_immediate) return;
  target.wc_flags |= IBV_WC_WITH_IMM;
  target.imm_data = htobe32(static_cast<uint32_t>(completion.immediate));
}

}  // namespace

void translate(const WorkCompletion& completion, ibv_wc& target) {
  target = {};
  target.wr_id = completion.wr_id;
  target.status = status_of(completion.status);
  target.opcode = opcode_of(completion.opcode);
  target.vendor_err = completion.vendor_error;
  target.byte_len = completion.byte_count;
  target.qp_num = completion.qp_number;
  if (completion.source.port() != 0) add_origin(completion, target);
  if (completion.invalidated) {
    target.wc_flags |= IBV_WC_WITH_INV;
    target.invalidated_rkey = completion.invalidated_stag;
  }
}

}  // namespace diwarp::compat
