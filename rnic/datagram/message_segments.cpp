// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/message_segments.h"

#include "rnic/queues/request_memory.h"

namespace diwarp::rnic {

rdmap::DatagramSegment header_of(const SendEntry& entry, uint32_t msn) {
  rdmap::DatagramSegment segment;
  segment.opcode = opcode_of(entry);
  segment.record_solicited =
      entry.opcode == WrOpcode::write_record && has(entry.flags, SendFlags::solicited);
  if (const uint64_t* immediate = entry.immediate()) {
    segment.has_immediate = true;
    segment.immediate = *immediate;
  }
  segment.q_key = entry.q_key;
  segment.invalidate_stag = entry.invalidate_stag;
  segment.msn = msn;
  segment.stag = entry.remote.stag;
  segment.message_length = static_cast<uint32_t>(entry.length);
  return segment;
}

}  // namespace diwarp::rnic
