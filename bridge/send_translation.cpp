// SPDX-License-Identifier: Apache-2.0
#include "bridge/send_translation.h"

#include <endian.h>

#include <array>
#include <optional>

#include "bridge/memory_region.h"
#include "ddp/scatter.h"
#include "diwarp/error.h"
#include "rdmap/opcodes.h"
#include "rdmap/request_checks.h"

namespace diwarp::bridge {
namespace {

/// How an operation is asked for, and what the device must be able to do for it.
struct Operation {
  ibv_wr_opcode opcode;
  Capability needed;
};

/// Nothing where libibverbs has no such request.
constexpr std::optional<Operation> find_operation(WrOpcode request) {
  switch (request) {
    case WrOpcode::send:
      return Operation{IBV_WR_SEND, Capability::none};
    case WrOpcode::send_with_invalidate:
      return Operation{IBV_WR_SEND_WITH_INV, Capability::none};
    case WrOpcode::rdma_write:
      return Operation{IBV_WR_RDMA_WRITE, Capability::none};
    case WrOpcode::rdma_read:
      return Operation{IBV_WR_RDMA_READ, Capability::none};
    case WrOpcode::immediate:
      return Operation{IBV_WR_SEND_WITH_IMM, Capability::immediate_data};
    case WrOpcode::fetch_add:
      return Operation{IBV_WR_ATOMIC_FETCH_AND_ADD, Capability::atomics};
    case WrOpcode::compare_swap:
      return Operation{IBV_WR_ATOMIC_CMP_AND_SWP, Capability::atomics};
    case WrOpcode::local_invalidate:
      return Operation{IBV_WR_LOCAL_INV, Capability::local_invalidate};
    case WrOpcode::bind_window:
      return Operation{IBV_WR_BIND_MW, Capability::memory_windows};
    default:
      return std::nullopt;
  }
}

constexpr auto kOperations = [] {
  std::array<std::optional<Operation>, static_cast<size_t>(WrOpcode::write_record) + 1> operations;
  for (size_t i = 0; i < operations.size(); ++i)
    operations[i] = find_operation(static_cast<WrOpcode>(i));
  return operations;
}();

const std::optional<Operation>& operation_of(WrOpcode request) {
  return kOperations[static_cast<size_t>(request)];
}

/// Whether the peer's data may be placed there: some devices write a Read's as a peer's Write.
bool sink_fits(const SendWorkRequest& request, const ProtectionDomain& domain) {
  if (!rdmap::is_read(request.opcode) || !domain.device().traits().reads_need_remote_write)
    return true;
  for (const Sge& sge : request.sges) {
    const std::optional<Access> access = domain.access_of(sge.lkey);
    if (access && !has(*access, Access::remote_write)) return false;
  }
  return true;
}

/// How libibverbs names the first byte that a window is bound to.
uint64_t first_named(const MemoryBinding& binding, const ProtectionDomain& domain) {
  return domain.named({binding.address, 1, binding.region});
}

/// A window's tagged offsets begin at 0, or where those of its region's part do.
std::error_code check_binding(const MemoryBinding& binding, const ProtectionDomain& domain) {
  const bool known =
      domain.window_of(binding.stag) != nullptr && domain.region_of(binding.region) != nullptr;
  if (!known) return Errc::invalid_argument;
  const bool offset_fits = binding.base == 0 || binding.base == first_named(binding, domain);
  return offset_fits ? std::error_code() : make_error_code(Errc::unsupported_operation);
}

/// An adapter has the usual masks and no others.
bool masks_fit(const AtomicOperands& atomic) {
  return atomic.add_mask == 0 && atomic.swap_mask == ~uint64_t{0} &&
         atomic.compare_mask == ~uint64_t{0};
}

/// All but empty SGEs, which siw does not take among others. `name` says how libibverbs names the
/// memory of one.
template <class Name>
int translate_filled(const SgeList& list, std::span<ibv_sge> sges, Name name) {
  int count = 0;
  for (const Sge& sge : list) {
    if (sge.length == 0) continue;
    sges[static_cast<size_t>(count++)] = {
        .addr = name(sge), .length = sge.length, .lkey = sge.lkey};
  }
  return count;
}

/// Of registered memory.
int translate_registered(const SgeList& list, const ProtectionDomain& domain,
                         std::span<ibv_sge> sges) {
  return translate_filled(list, sges, [&domain](const Sge& sge) { return domain.named(sge); });
}

/// Inline data are read where they are, whatever their lkey.
int translate_inline(const SgeList& list, std::span<ibv_sge> sges) {
  return translate_filled(list, sges,
                          [](const Sge& sge) { return reinterpret_cast<uint64_t>(sge.address); });
}

unsigned flags_of(SendFlags flags) {
  unsigned out = IBV_SEND_SIGNALED;
  if (has(flags, SendFlags::solicited)) out |= IBV_SEND_SOLICITED;
  if (has(flags, SendFlags::inline_data)) out |= IBV_SEND_INLINE;
  if (has(flags, SendFlags::fence)) out |= IBV_SEND_FENCE;
  return out;
}

void translate_binding(const SendWorkRequest& request, const ProtectionDomain& domain,
                       ibv_send_wr& out) {
  const MemoryBinding& binding = request.binding;
  out.bind_mw.mw = domain.window_of(binding.stag);
  out.bind_mw.rkey = binding.stag;
  out.bind_mw.bind_info.mr = domain.region_of(binding.region);
  out.bind_mw.bind_info.addr = first_named(binding, domain);
  out.bind_mw.bind_info.length = binding.length;
  const int zero_based = binding.base == 0 ? IBV_ACCESS_ZERO_BASED : 0;
  out.bind_mw.bind_info.mw_access_flags =
      static_cast<unsigned>(verbs_access(binding.access) | zero_based);
}

void translate_operands(const SendWorkRequest& request, const ProtectionDomain& domain,
                        ibv_send_wr& out) {
  const rdmap::WrInfo& info = rdmap::info_of(request.opcode);
  if (info.takes(rdmap::Operands::invalidate_stag)) {
    out.invalidate_rkey = request.invalidate_stag;
    out.wr.rdma.rkey = request.invalidate_stag;  // siw's library takes it from here
  }
  if (info.takes(rdmap::Operands::binding)) return translate_binding(request, domain, out);
  if (request.immediate) out.imm_data = htobe32(static_cast<uint32_t>(*request.immediate));
  if (info.takes(rdmap::Operands::atomic)) {
    const bool compares = request.opcode == WrOpcode::compare_swap;
    out.wr.atomic = {.remote_addr = request.remote.offset,
                     .compare_add = compares ? request.atomic.compare : request.atomic.operand,
                     .swap = request.atomic.operand,
                     .rkey = request.remote.stag};
  } else if (info.takes(rdmap::Operands::remote_memory)) {
    out.wr.rdma = {.remote_addr = request.remote.offset, .rkey = request.remote.stag};
  }
}

}  // namespace

std::error_code check_send(const SendWorkRequest& request, const QueuePairCapacity& capacity,
                           const ProtectionDomain& domain) noexcept {
  if (const std::error_code error = rdmap::check_stream_request(request)) return error;
  const std::optional<Operation>& operation = operation_of(request.opcode);
  if (!operation || !has(domain.device().capabilities(), operation->needed))
    return Errc::unsupported_operation;
  if (request.immediate && *request.immediate >> 32 != 0) return Errc::unsupported_operation;
  if (!masks_fit(request.atomic)) return Errc::unsupported_operation;
  if (!sink_fits(request, domain)) return Errc::unsupported_operation;
  if (request.opcode == WrOpcode::bind_window) return check_binding(request.binding, domain);
  if (request.sges.size() > capacity.max_send_sge) return Errc::too_many_sges;
  const uint64_t length = ddp::total_length(request.sges);
  if (length > kMaxMessage) return Errc::message_too_large;
  if (has(request.flags, SendFlags::inline_data) && length > capacity.max_inline_data)
    return Errc::inline_too_large;
  return {};
}

std::error_code check_receive(const ReceiveWorkRequest& request, uint32_t max_sge) noexcept {
  if (request.sges.size() > max_sge) return Errc::too_many_sges;
  if (ddp::total_length(request.sges) > kMaxMessage) return Errc::message_too_large;
  return {};
}

int translate(const SgeList& list, const ProtectionDomain& domain, std::span<ibv_sge> sges) {
  const int count = translate_registered(list, domain, sges);
  if (count != 0) return count;
  sges[0] = {};  // siw takes no receive without an SGE
  return 1;
}

bool translate(const SendWorkRequest& request, const ProtectionDomain& domain, ibv_send_wr& out,
               std::span<ibv_sge> sges) {
  out = {};
  out.sg_list = sges.data();
  // A Read names a sink even where nothing is read.
  if (rdmap::is_read(request.opcode))
    out.num_sge = translate(request.sges, domain, sges);
  else if (has(request.flags, SendFlags::inline_data))
    out.num_sge = translate_inline(request.sges, sges);
  else
    out.num_sge = translate_registered(request.sges, domain, sges);
  out.opcode = operation_of(request.opcode)->opcode;
  out.send_flags = flags_of(request.flags);
  translate_operands(request, domain, out);
  return request.opcode != WrOpcode::bind_window ||
         (out.bind_mw.mw != nullptr && out.bind_mw.bind_info.mr != nullptr);
}

void describe(const SendWorkRequest& request, bool signal_all, QueueTable::Request& entry) {
  entry.wr_id = request.wr_id;
  entry.opcode = rdmap::info_of(request.opcode).completion;
  entry.reported = signal_all || has(request.flags, SendFlags::signaled);
  entry.bytes = static_cast<uint32_t>(ddp::total_length(request.sges));
  if (request.opcode == WrOpcode::bind_window) entry.binding = request.binding;
  if (request.opcode == WrOpcode::local_invalidate) entry.binding.stag = request.invalidate_stag;
}

}  // namespace diwarp::bridge
