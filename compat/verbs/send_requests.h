// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "compat/verbs/memory.h"

namespace diwarp::compat {

/// The facts about an opcode of libibverbs.
struct SendOpcode {
  enum class Remote : uint8_t { none, rdma, atomic };

  ibv_wr_opcode of;
  WrOpcode opcode;
  Remote remote;     ///< which part of the request names the peer's memory
  bool invalidates;  ///< it names an STag to invalidate
};

/// Those that reliable connections have. iWARP has no immediate data with a Send or a Write.
inline constexpr std::array kSendOpcodes{
    SendOpcode{IBV_WR_RDMA_WRITE, WrOpcode::rdma_write, SendOpcode::Remote::rdma, false},
    SendOpcode{IBV_WR_SEND, WrOpcode::send, SendOpcode::Remote::none, false},
    SendOpcode{IBV_WR_RDMA_READ, WrOpcode::rdma_read, SendOpcode::Remote::rdma, false},
    SendOpcode{IBV_WR_ATOMIC_CMP_AND_SWP, WrOpcode::compare_swap, SendOpcode::Remote::atomic,
               false},
    SendOpcode{IBV_WR_ATOMIC_FETCH_AND_ADD, WrOpcode::fetch_add, SendOpcode::Remote::atomic, false},
    SendOpcode{IBV_WR_LOCAL_INV, WrOpcode::local_invalidate, SendOpcode::Remote::none, true},
    SendOpcode{IBV_WR_BIND_MW, WrOpcode::bind_window, SendOpcode::Remote::none, false},
    SendOpcode{IBV_WR_SEND_WITH_INV, WrOpcode::send_with_invalidate, SendOpcode::Remote::none,
               true},
};

/// Null for one that reliable connections do not have.
const SendOpcode* facts_of(ibv_wr_opcode opcode);

/// The library's request for one of libibverbs. It points to the SGEs of `sges`; `regions` are
/// those of its protection domain. Throws Refusal.
SendWorkRequest translate(const ibv_send_wr& request, const SgeList& sges,
                          const OffsetRegions& regions);

}  // namespace diwarp::compat
