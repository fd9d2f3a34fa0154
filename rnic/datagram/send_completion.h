// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/counters.h"
#include "diwarp/types.h"
#include "rdmap/datagram.h"

namespace diwarp::rnic {

class QueuePair;
class RecordTable;

/// Whether it is of a Send with Invalidate, which names an STag of this side.
inline bool invalidates(const rdmap::DatagramSegment& segment) {
  return rdmap::facts_of(segment.opcode).invalidates;
}

/// The completion of a Send over datagrams that is delivered now: `bytes` from `source`, as its
/// segment `last` tells. Invalidates what that asks for, if the peer may (else counts); records
/// that are open there are reported as they are. With the baton.
WorkCompletion delivered_send(QueuePair& queue_pair, RecordTable& records, Counters& counters,
                              const rdmap::DatagramSegment& last, const Address& source,
                              uint64_t bytes);

}  // namespace diwarp::rnic
