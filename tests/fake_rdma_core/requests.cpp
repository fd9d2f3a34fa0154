// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/requests.h"

#include <endian.h>

#include <cerrno>

#include "fake_rdma_core/capabilities.h"
#include "fake_rdma_core/memory.h"

namespace fake {
namespace {

constexpr unsigned kKnownFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;

diwarp::Sge translated(const Adapter& adapter, const ibv_sge& sge, SgeUse use) {
  auto* const address = reinterpret_cast<std::byte*>(sge.addr);
  if (use == SgeUse::inline_data) return {.address = address, .length = sge.length};
  const std::optional<Key> key = adapter.key(sge.lkey);
  const bool strict = use == SgeUse::read_sink && !able(Ability::read_sinks);
  if (!key || (strict && !key->read_sink)) return {.address = address, .length = sge.length};
  const auto memory = reinterpret_cast<uint64_t>(key->address);
  return {.address = reinterpret_cast<std::byte*>(memory + (sge.addr - key->iova)),
          .length = sge.length,
          .lkey = key->stag};
}

/// Every request is signaled to diwarp: the queue pair has to know when it is done.
diwarp::SendFlags flags_of(unsigned flags) {
  refuse_if((flags & ~kKnownFlags) != 0, EINVAL);
  using diwarp::SendFlags;
  SendFlags result = SendFlags::signaled;
  if ((flags & IBV_SEND_FENCE) != 0) result = result | SendFlags::fence;
  if ((flags & IBV_SEND_SOLICITED) != 0) result = result | SendFlags::solicited;
  if ((flags & IBV_SEND_INLINE) != 0) result = result | SendFlags::inline_data;
  return result;
}

diwarp::WrOpcode opcode_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
      return diwarp::WrOpcode::send;
    case IBV_WR_SEND_WITH_IMM:
      return diwarp::WrOpcode::immediate;
    case IBV_WR_SEND_WITH_INV:
      return diwarp::WrOpcode::send_with_invalidate;
    case IBV_WR_RDMA_WRITE:
      return diwarp::WrOpcode::rdma_write;
    case IBV_WR_RDMA_READ:
      return diwarp::WrOpcode::rdma_read;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return diwarp::WrOpcode::compare_swap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return diwarp::WrOpcode::fetch_add;
    case IBV_WR_LOCAL_INV:
      return diwarp::WrOpcode::local_invalidate;
    case IBV_WR_BIND_MW:
      return diwarp::WrOpcode::bind_window;
    default:
      refuse(EINVAL);
  }
}

void add_atomic(diwarp::SendWorkRequest& result, const ibv_send_wr& request) {
  refuse_if(!able(Ability::atomics), EINVAL);
  result.remote = {.stag = request.wr.atomic.rkey, .offset = request.wr.atomic.remote_addr};
  if (request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    result.atomic.operand = request.wr.atomic.compare_add;
    return;
  }
  result.atomic.compare = request.wr.atomic.compare_add;
  result.atomic.operand = request.wr.atomic.swap;
}

/// The 4 bytes are the low half of diwarp's 8.
void add_immediate(diwarp::SendWorkRequest& result, const ibv_send_wr& request) {
  refuse_if(!able(Ability::immediate), EINVAL);
  for (int i = 0; i < request.num_sge; ++i) refuse_if(request.sg_list[i].length != 0, EINVAL);
  result.immediate = be32toh(request.imm_data);
}

/// The addresses of windows count from the iova of their region, like those of SGEs.
void add_binding(diwarp::SendWorkRequest& result, const ibv_send_wr& request, const ibv_pd* pd) {
  refuse_if(!able(Ability::memory_windows), EINVAL);
  ibv_mw* const window = request.bind_mw.mw;
  const ibv_mw_bind_info& info = request.bind_mw.bind_info;
  refuse_if(window == nullptr || window->type != IBV_MW_TYPE_2 || window->pd != pd, EINVAL);
  refuse_if(info.mr == nullptr || info.mr->pd != pd, EINVAL);
  const auto& region = *static_cast<const Mr*>(info.mr);
  static_cast<Mw*>(window)->note_binding(request.bind_mw.rkey, region);
  const bool zero_based = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
  result.binding = {
      .stag = request.bind_mw.rkey,
      .region = region.rkey,
      .address = static_cast<std::byte*>(region.addr) + (info.addr - region.iova()),
      .length = info.length,
      .access = access_of(info.mw_access_flags & ~static_cast<unsigned>(IBV_ACCESS_ZERO_BASED)),
      .base = zero_based ? 0 : info.addr};
}

}  // namespace

Sges::Sges(const Adapter& adapter, const ibv_sge* sges, int count, uint32_t most, SgeUse use)
    : count_(static_cast<size_t>(count)) {
  refuse_if(count < 0 || static_cast<uint32_t>(count) > most || most > kMaxSge, EINVAL);
  for (size_t i = 0; i < count_; ++i) sges_[i] = translated(adapter, sges[i], use);
}

uint64_t Sges::length() const {
  uint64_t total = 0;
  for (size_t i = 0; i < count_; ++i) total += sges_[i].length;
  return total;
}

diwarp::SendWorkRequest send_request(const ibv_send_wr& request, const ibv_pd* pd) {
  diwarp::SendWorkRequest result;
  result.opcode = opcode_of(request.opcode);
  result.flags = flags_of(request.send_flags);
  switch (request.opcode) {
    case IBV_WR_SEND_WITH_IMM:
      add_immediate(result, request);
      break;
    case IBV_WR_LOCAL_INV:
      refuse_if(!able(Ability::local_invalidate), EINVAL);
      [[fallthrough]];
    case IBV_WR_SEND_WITH_INV:
      result.invalidate_stag = request.invalidate_rkey;
      break;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_READ:
      result.remote = {.stag = request.wr.rdma.rkey, .offset = request.wr.rdma.remote_addr};
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      add_atomic(result, request);
      break;
    case IBV_WR_BIND_MW:
      add_binding(result, request, pd);
      break;
    default:
      break;
  }
  return result;
}

SgeUse sge_use(const ibv_send_wr& request) {
  if ((request.send_flags & IBV_SEND_INLINE) != 0) return SgeUse::inline_data;
  return request.opcode == IBV_WR_RDMA_READ ? SgeUse::read_sink : SgeUse::local;
}

int post_errno(const std::error_code& code) {
  if (!code) return 0;
  return code == diwarp::Errc::queue_full ? ENOMEM : EINVAL;
}

}  // namespace fake
