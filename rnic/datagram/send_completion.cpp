// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/send_completion.h"

#include "rnic/datagram/record_table.h"
#include "rnic/queues/queue_pair.h"

namespace diwarp::rnic {

namespace {

bool invalidate(QueuePair& queue_pair, RecordTable& records, STag stag) {
  const ddp::RegionFault found =
      queue_pair.regions().invalidate(stag, queue_pair.domain_number(), queue_pair.number(), true);
  if (found != ddp::RegionFault::none) return false;
  records.close_on(stag);
  return true;
}

}  // namespace

WorkCompletion delivered_send(QueuePair& queue_pair, RecordTable& records, Counters& counters,
                              const rdmap::DatagramSegment& last, const Address& source,
                              uint64_t bytes) {
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv;
  completion.solicited = last.solicited();
  completion.byte_count = static_cast<uint32_t>(bytes);
  completion.has_immediate = last.has_immediate;
  completion.immediate = last.immediate;
  completion.source = source;
  if (!invalidates(last)) return completion;
  completion.invalidated = invalidate(queue_pair, records, last.invalidate_stag);
  if (completion.invalidated)
    completion.invalidated_stag = last.invalidate_stag;
  else
    counters.add(Counter::drop_stag);
  return completion;
}

}  // namespace diwarp::rnic
