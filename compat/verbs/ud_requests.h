// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <cstdint>

namespace diwarp::compat {

/// What InfiniBand calls the number of a group's queue pairs.
inline constexpr uint32_t kGroupNumber = 0xffffff;
/// A Q_Key with this bit stands for the one of the queue pair that sends.
inline constexpr uint32_t kOwnQKey = 0x80000000;

/// Where a message to the queue pair `number` at an address goes. Throws Refusal(EINVAL) for a
/// number that no UD queue pair has.
Address ud_destination(const Address& address, uint32_t number);

/// Whether a request names its destination. Throws Refusal(EINVAL) for an opcode that UD has not.
///
/// InfiniBand has Sends alone. perftest's bandwidth of Sends takes it that over iWARP the receiver
/// tells by RDMA Writes how many receives it has posted, and does so over UD as well. Such a Write
/// names no destination: it goes to where the latest message came from, as a Write-Record.
bool names_destination(ibv_wr_opcode opcode);

/// The library's request for one of a UD queue pair, which has `own_q_key`. It points to the SGEs
/// of `sges`. Throws Refusal.
SendWorkRequest translate_ud(const ibv_send_wr& request, const SgeList& sges,
                             const Address& destination, uint32_t own_q_key);

}  // namespace diwarp::compat
