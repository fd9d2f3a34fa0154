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

/// The library's request for a Send of a UD queue pair, which has `own_q_key`. It points to the
/// SGEs of `sges`. Throws Refusal.
SendWorkRequest translate_ud(const ibv_send_wr& request, const SgeList& sges,
                             const Address& destination, uint32_t own_q_key);

}  // namespace diwarp::compat
