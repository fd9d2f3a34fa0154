// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/ud_requests.h"

#include <endian.h>

#include <cerrno>

#include "compat/common/error.h"
#include "compat/verbs/groups.h"
#include "compat/verbs/send_flags.h"

namespace diwarp::compat {

Address ud_destination(const Address& address, uint32_t number) {
  if (address.is_multicast()) return address.with_port(kGroupPort);
  refuse_if(number == 0 || number > 0xffff, EINVAL);
  return address.with_port(static_cast<uint16_t>(number));
}

bool names_destination(ibv_wr_opcode opcode) {
  if (opcode == IBV_WR_RDMA_WRITE) return false;
  refuse_if(opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM, EINVAL);
  return true;
}

SendWorkRequest translate_ud(const ibv_send_wr& request, const SgeList& sges,
                             const Address& destination, uint32_t own_q_key) {
  const bool send = names_destination(request.opcode);
  const uint32_t q_key = request.wr.ud.remote_qkey;
  SendWorkRequest made{.wr_id = request.wr_id,
                       .sges = sges,
                       .flags = send_flags_of(request.send_flags & ~unsigned{IBV_SEND_FENCE}),
                       .destination = destination,
                       .q_key = (q_key & kOwnQKey) != 0 ? own_q_key : q_key,
                       .opcode = send ? WrOpcode::send : WrOpcode::write_record};
  if (!send) {
    made.q_key = 0;
    made.remote = {.stag = request.wr.rdma.rkey, .offset = request.wr.rdma.remote_addr};
  }
  if (request.opcode == IBV_WR_SEND_WITH_IMM) made.immediate = be32toh(request.imm_data);
  return made;
}

}  // namespace diwarp::compat
