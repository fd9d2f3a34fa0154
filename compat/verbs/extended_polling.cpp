// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/extended_polling.h"

#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/completion_queue.h"
#include "compat/verbs/functions.h"

namespace diwarp::compat {
namespace {

Cq& own(ibv_cq_ex* cq) { return *static_cast<Cq*>(cq); }
const ibv_wc& current(ibv_cq_ex* cq) { return own(cq).current(); }

int start_poll(ibv_cq_ex* cq, ibv_poll_cq_attr* attributes) {
  if (attributes != nullptr && attributes->comp_mask != 0) return EINVAL;
  return own(cq).start_poll() ? 0 : ENOENT;
}
int next_poll(ibv_cq_ex* cq) { return own(cq).next_poll() ? 0 : ENOENT; }
void end_poll(ibv_cq_ex* cq) { own(cq).end_poll(); }

ibv_wc_opcode read_opcode(ibv_cq_ex* cq) { return current(cq).opcode; }
uint32_t read_vendor_err(ibv_cq_ex* cq) { return current(cq).vendor_err; }
uint32_t read_byte_len(ibv_cq_ex* cq) { return current(cq).byte_len; }
/// Also what a Send invalidated.
__be32 read_imm_data(ibv_cq_ex* cq) { return current(cq).imm_data; }
uint32_t read_qp_num(ibv_cq_ex* cq) { return current(cq).qp_num; }
uint32_t read_src_qp(ibv_cq_ex* cq) { return current(cq).src_qp; }
unsigned read_wc_flags(ibv_cq_ex* cq) { return current(cq).wc_flags; }
uint32_t read_slid(ibv_cq_ex* cq) { return current(cq).slid; }
uint8_t read_sl(ibv_cq_ex* cq) { return current(cq).sl; }
uint8_t read_dlid_path_bits(ibv_cq_ex* cq) { return current(cq).dlid_path_bits; }

}  // namespace

void check_extended(const ibv_cq_init_attr_ex& init) {
  constexpr uint32_t kFlags =
      IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
  if ((init.wc_flags & ~uint64_t{IBV_WC_STANDARD_FLAGS}) != 0)
    unsupported("ibv_create_cq_ex with timestamps, tags or VLANs");
  if ((init.comp_mask & ~uint32_t{IBV_CQ_INIT_ATTR_MASK_FLAGS}) != 0)
    unsupported("ibv_create_cq_ex with a parent domain");
  refuse_if((init.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 && (init.flags & ~kFlags) != 0,
            EINVAL);
}

void fill_functions(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = next_poll;
  cq.end_poll = end_poll;
  cq.read_opcode = read_opcode;
  cq.read_vendor_err = read_vendor_err;
  cq.read_byte_len = read_byte_len;
  cq.read_imm_data = read_imm_data;
  cq.read_qp_num = read_qp_num;
  cq.read_src_qp = read_src_qp;
  cq.read_wc_flags = read_wc_flags;
  cq.read_slid = read_slid;
  cq.read_sl = read_sl;
  cq.read_dlid_path_bits = read_dlid_path_bits;
}

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* init) {
  return or_null([&]() -> ibv_cq_ex* {
    check_extended(*init);
    refuse_if(init->cqe > uint32_t{INT32_MAX}, EINVAL);
    auto* const made = new Cq(context_of(context), static_cast<int>(init->cqe), init->cq_context,
                              init->channel, static_cast<int>(init->comp_vector));
    fill_functions(*made);
    LiveObjects<Cq>::add(made);
    return made;
  });
}

}  // namespace diwarp::compat
