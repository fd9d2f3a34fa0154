// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/work_completions.h"

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

void translate(const WorkCompletion& completion, ibv_wc& target) {
  target = {};
  target.wr_id = completion.wr_id;
  target.status = status_of(completion.status);
  target.opcode = opcode_of(completion.opcode);
  target.vendor_err = completion.vendor_error;
  target.byte_len = completion.byte_count;
  target.qp_num = completion.qp_number;
  if (completion.invalidated) {
    target.wc_flags = IBV_WC_WITH_INV;
    target.invalidated_rkey = completion.invalidated_stag;
  }
}

}  // namespace diwarp::compat
