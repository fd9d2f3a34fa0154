// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/send_completion.h"

#include "rnic/datagram/record_table.h"
#include "rnic/queues/local_operation.h"

namespace diwarp::rnic {

bool invalidate_for_send(const ddp::ProtectionContext& protection, RecordTable& records,
                         const LoggedCounters& counters, STag stag, const Address& source) {
  // guard(send-invalidate)
  if (protection.invalidate_for_peer(stag) != ddp::RegionFault::none) {
    counters.add(Counter::drop_stag, source);
    return false;
  }
  records.close_on(stag);
  return true;
}

WcStatus do_local(const ddp::ProtectionContext& protection, RecordTable& records,
                  const SendEntry& entry) {
  const WcStatus status = do_local(protection, entry);
  if (entry.opcode == WrOpcode::local_invalidate && status == WcStatus::success)
    records.close_on(entry.invalidate_stag);
  return status;
}

}  // namespace diwarp::rnic
