// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "diwarp/types.h"
#include "rdmap/datagram.h"
#include "rnic/queues/request_memory.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The fields that the segments of a Send have in common.
struct MessageInfo {
  rdmap::Opcode opcode = rdmap::Opcode::send;
  bool has_immediate = false;
  STag invalidate_stag = 0;
  uint64_t immediate = 0;
  friend bool operator==(const MessageInfo&, const MessageInfo&) = default;

  static MessageInfo of(const rdmap::DatagramSegment& segment) {
    return {segment.opcode, segment.has_immediate, segment.invalidate_stag, segment.immediate};
  }
};

/// The parts of a message's segments that are the same in all of them.
inline rdmap::DatagramSegment header_of(const SendEntry& entry, uint32_t msn) {
  rdmap::DatagramSegment segment;
  segment.opcode = opcode_of(entry);
  segment.record_solicited =
      rdmap::is_record(entry.opcode) && has(entry.flags, SendFlags::solicited);
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
