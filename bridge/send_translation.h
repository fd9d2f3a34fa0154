// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <system_error>

#include "bridge/protection_domain.h"
#include "bridge/rdma_core.h"
#include "bridge/work_table.h"
#include "diwarp/queue_options.h"
#include "diwarp/types.h"

namespace diwarp::bridge {

/// Why a request cannot be posted to a device: as QueuePair::post_send() has it.
std::error_code check_send(const SendWorkRequest& request, const QueuePairCapacity& capacity,
                           const ProtectionDomain& domain) noexcept;
std::error_code check_receive(const ReceiveWorkRequest& request, uint32_t max_sge) noexcept;

/// A checked request as libibverbs has it. `sges` has room for its SGEs. The device's wr_id is the
/// caller's to set. False where its window or region has gone since it was checked.
bool translate(const SendWorkRequest& request, const ProtectionDomain& domain, ibv_send_wr& out,
               std::span<ibv_sge> sges);
/// The same of a receive's SGEs; `sges` has room for one at least. Returns how many.
int translate(const SgeList& list, const ProtectionDomain& domain, std::span<ibv_sge> sges);

/// What the table of a send queue keeps of it.
void describe(const SendWorkRequest& request, bool signal_all, QueueTable::Request& entry);

}  // namespace diwarp::bridge
