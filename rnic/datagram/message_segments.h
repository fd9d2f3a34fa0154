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
rdmap::DatagramSegment header_of(const SendEntry& entry, uint32_t msn);

}  // namespace diwarp::rnic
