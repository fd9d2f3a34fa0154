// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "diwarp/types.h"
#include "rdmap/datagram.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// What the segments of a Send have in common.
struct MessageFacts {
  rdmap::Opcode opcode = rdmap::Opcode::send;
  bool has_immediate = false;
  STag invalidate_stag = 0;
  uint64_t immediate = 0;
  friend bool operator==(const MessageFacts&, const MessageFacts&) = default;

  static MessageFacts of(const rdmap::DatagramSegment& segment) {
    return {segment.opcode, segment.has_immediate, segment.invalidate_stag, segment.immediate};
  }
};

/// The parts of a message's segments that are the same in all of them.
rdmap::DatagramSegment segment_of(const SendEntry& entry, uint32_t msn);
/// Makes `segment` the one that carries bytes [offset, offset + length) of the message.
inline void cut_segment(rdmap::DatagramSegment& segment, const SendEntry& entry, uint64_t offset,
                        uint64_t length) {
  segment.last = offset + length == entry.length;
  segment.message_offset = static_cast<uint32_t>(offset);
  segment.tagged_offset = entry.remote.offset + offset;
}

}  // namespace diwarp::rnic
