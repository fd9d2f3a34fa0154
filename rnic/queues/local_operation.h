// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ddp/protection_context.h"
#include "diwarp/types.h"
#include "rnic/queues/send_entry.h"

namespace diwarp::rnic {

/// Does a request that needs nothing sent: invalidates, binds, registers.
WcStatus do_local(const ddp::ProtectionContext& protection, const SendEntry& entry);

}  // namespace diwarp::rnic
