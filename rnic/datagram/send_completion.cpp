// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/send_completion.h"

#include "rnic/datagram/record_table.h"
#include "rnic/queues/local_operation.h"

namespace diwarp::rnic {

namespace {

bool invalidate(const ddp::ProtectionContext& protection, RecordTable& records, STag stag) {
  // guard(send-invalidate)
  if (protection.invalidate_for_peer(stag) != ddp::RegionFault::none) return false;
  records.close_on(stag);
  return true;
}

/// Apart from Sends that invalidate nothing, which would save registers for it.
[[gnu::noinline]] void tell_invalidation(bool done, const LoggedCounters& counters, STag stag,
                                         WorkCompletion& completion) {
  completion.invalidated = done;
  if (done)
    completion.invalidated_stag = stag;
  else
    counters.add(Counter::drop_stag, completion.source);
}

}  // namespace

WorkCompletion delivered_send(const ddp::ProtectionContext& protection, RecordTable& records,
                              const LoggedCounters& counters, const rdmap::DatagramSegment& last,
                              const Address& source, uint64_t bytes) {
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv;
  completion.solicited = last.solicited();
  completion.byte_count = static_cast<uint32_t>(bytes);
  completion.has_immediate = last.has_immediate;
  completion.immediate = last.immediate;
  completion.source = source;
  if (!invalidates(last)) return completion;
  tell_invalidation(invalidate(protection, records, last.invalidate_stag), counters,
                    last.invalidate_stag, completion);
  return completion;
}

WcStatus do_local(const ddp::ProtectionContext& protection, RecordTable& records,
                  const SendEntry& entry) {
  const WcStatus status = do_local(protection, entry);
  if (entry.opcode == WrOpcode::local_invalidate && status == WcStatus::success)
    records.close_on(entry.invalidate_stag);
  return status;
}

}  // namespace diwarp::rnic
