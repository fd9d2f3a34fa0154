// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ddp/protection_context.h"
#include "diwarp/types.h"
#include "rdmap/datagram.h"
#include "rnic/context/counter_log.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

class RecordTable;

/// Whether it is of a Send with Invalidate, which names an STag of this side.
inline bool invalidates(const rdmap::DatagramSegment& segment) {
  return rdmap::info_of(segment.opcode).invalidates;
}

/// The completion of a Send over datagrams that is delivered now: `bytes` from `source`, as its
/// segment `last` tells. Invalidates what that asks for, if the peer may (else counts); records
/// that are open there are reported as they are. With the baton.
WorkCompletion delivered_send(const ddp::ProtectionContext& protection, RecordTable& records,
                              const LoggedCounters& counters, const rdmap::DatagramSegment& last,
                              const Address& source, uint64_t bytes);

/// Does a request of a queue pair over datagrams that needs nothing sent. Records on an STag that
/// it invalidates end. With the baton.
WcStatus do_local(const ddp::ProtectionContext& protection, RecordTable& records,
                  const SendEntry& entry);

}  // namespace diwarp::rnic
