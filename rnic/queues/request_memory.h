// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ddp/protection_context.h"
#include "rdmap/opcodes.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// Whether the memory of a request may be used for what it is for. Inline data are the queue's own.
inline bool may_send(const ddp::ProtectionContext& protection, const SendEntry& entry) {
  return has(entry.flags, SendFlags::inline_data) || protection.may_read(entry.sges);
}

/// Of the message that the request sends.
inline rdmap::Opcode opcode_of(const SendEntry& entry) {
  return rdmap::opcode_of(entry.opcode, has(entry.flags, SendFlags::solicited));
}

/// Does a request that needs nothing sent: invalidates, binds, registers.
WcStatus do_local(const ddp::ProtectionContext& protection, const SendEntry& entry);

}  // namespace diwarp::rnic
