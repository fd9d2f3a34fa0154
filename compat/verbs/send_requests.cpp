// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/send_requests.h"

#include <cerrno>

#include "compat/common/log.h"
#include "compat/verbs/send_flags.h"

namespace diwarp::compat {
namespace {

/// The address counts from where the region's tagged offsets begin, like those of SGEs.
MemoryBinding binding_of(const ibv_send_wr& request, const OffsetRegions& regions) {
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  MemoryBinding binding{.stag = request.bind_mw.rkey, .length = info.length};
  if (info.length == 0) return binding;
  refuse_if(info.mr == nullptr, EINVAL);
  binding.region = info.mr->lkey;
  Sge first{reinterpret_cast<void*>(info.addr), 1, binding.region};
  regions.translate({&first, 1});
  binding.address = first.address;
  binding.access = access_of(info.mw_access_flags & ~unsigned{IBV_ACCESS_ZERO_BASED});
  const bool zero_based = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
  binding.base = zero_based ? 0 : info.addr;
  return binding;
}

const SendOpcode& known_facts(ibv_wr_opcode opcode) {
  if (const SendOpcode* const facts = facts_of(opcode)) return *facts;
  if (opcode == IBV_WR_SEND_WITH_IMM) unsupported("IBV_WR_SEND_WITH_IMM on RC");
  if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) unsupported("IBV_WR_RDMA_WRITE_WITH_IMM on RC");
  throw Refusal(EINVAL);
}

}  // namespace

const SendOpcode* facts_of(ibv_wr_opcode opcode) {
  for (const SendOpcode& one : kSendOpcodes)
    if (one.of == opcode) return &one;
  return nullptr;
}

SendWorkRequest translate(const ibv_send_wr& request, const SgeList& sges,
                          const OffsetRegions& regions) {
  const SendOpcode& facts = known_facts(request.opcode);
  SendWorkRequest made{.wr_id = request.wr_id,
                       .sges = sges,
                       .flags = send_flags_of(request.send_flags),
                       .opcode = facts.opcode};
  if (facts.remote == SendOpcode::Remote::rdma)
    made.remote = {.stag = request.wr.rdma.rkey, .offset = request.wr.rdma.remote_addr};
  if (facts.remote == SendOpcode::Remote::atomic)
    made.remote = {.stag = request.wr.atomic.rkey, .offset = request.wr.atomic.remote_addr};
  if (facts.invalidates) made.invalidate_stag = request.invalidate_rkey;
  if (facts.opcode == WrOpcode::fetch_add) made.atomic.operand = request.wr.atomic.compare_add;
  if (facts.opcode == WrOpcode::compare_swap) {
    made.atomic.compare = request.wr.atomic.compare_add;
    made.atomic.operand = request.wr.atomic.swap;
  }
  if (facts.opcode == WrOpcode::bind_window) made.binding = binding_of(request, regions);
  return made;
}

}  // namespace diwarp::compat
