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

/// Invalidates what a Send asks for. False, and counted, where its source may not.
[[gnu::cold, gnu::noinline]] bool invalidate_for_send(const ddp::ProtectionContext& protection,
                                                      RecordTable& records,
                                                      const LoggedCounters& counters, STag stag,
                                                      const Address& source);

/// The outcome of a Send over datagrams that is delivered now: `bytes` from `source`, as its
/// segment `last` tells. Invalidates what that asks for, if the peer may (else counts); records
/// that are open there are reported as they are. With the baton.
inline ReceiveOutcome delivered_send(const ddp::ProtectionContext& protection, RecordTable& records,
                                     const LoggedCounters& counters,
                                     const rdmap::DatagramSegment& last, const Address& source,
                                     uint64_t bytes) {
  ReceiveOutcome outcome;
  outcome.solicited = last.solicited();
  outcome.byte_count = static_cast<uint32_t>(bytes);
  outcome.has_immediate = last.has_immediate;
  outcome.immediate = last.immediate;
  outcome.source = source;
  if (!invalidates(last)) return outcome;
  outcome.invalidated =
      invalidate_for_send(protection, records, counters, last.invalidate_stag, source);
  if (outcome.invalidated) outcome.invalidated_stag = last.invalidate_stag;
  return outcome;
}

/// Does a request of a queue pair over datagrams that needs nothing sent. Records on an STag that
/// it invalidates end. With the baton.
WcStatus do_local(const ddp::ProtectionContext& protection, RecordTable& records,
                  const SendEntry& entry);

}  // namespace diwarp::rnic
