// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/header.h"
#include "diwarp/attributes.h"
#include "rdmap/bodies.h"
#include "rdmap/opcodes.h"

/// RDMAP messages on a reliable stream (RFC 5040), one ULPDU at a time.
namespace diwarp::rdmap {

/// One DDP segment of a message, in host order. The opcode decides which fields mean something.
struct StreamSegment {
  Opcode opcode = Opcode::send;
  bool last = true;
  uint32_t invalidate_stag = 0;  ///< Sends with Invalidate
  uint32_t msn = 0;              ///< untagged
  uint32_t message_offset = 0;   ///< untagged: MO
  uint32_t stag = 0;             ///< tagged
  uint64_t tagged_offset = 0;    ///< tagged: TO
  ConstBytes payload = {};       ///< the bytes after the DDP header
  size_t missing = 0;            ///< bytes of the payload that are still to come

  size_t length() const { return payload.size() + missing; }
};

/// Writes the segment's DDP header (18 bytes untagged, 14 tagged) without the payload to the front
/// of `out`; returns bytes written.
size_t encode_header(const StreamSegment& segment, Bytes out);

/// The receiving half of one RDMAP stream: headers, MSN and MO rules (RFC 5041 section 5.3: on a
/// stream segments arrive in order, so MO must continue exactly). It checks what can be checked
/// without knowing buffers: these are its user's.
class StreamReceiver {
 public:
  struct Result {
    std::optional<TerminateCode> fault;
    /// Without fault: the segment. Messages of one segment are whole and have the right length.
    StreamSegment segment = {};
  };

  /// Checks the next ULPDU, in this order: DDP version, length of the header, queue number, RDMAP
  /// version, opcode and its queue, MSN, MO, the opcode inside a message, the length of messages of
  /// one segment, the longest message. With a fault the stream is over. Of the ULPDU, `missing`
  /// bytes at its end may still be to come: they count, and a header that is not whole is a fault.
  Result accept(ConstBytes ulpdu, size_t missing = 0);

  /// True if the next segment on queue 0 starts a new message.
  bool at_send_start() const { return !inside_send_; }
  /// True between two messages, tagged ones included.
  bool at_boundary() const { return !inside_send_ && !inside_tagged_; }

 private:
  std::optional<TerminateCode> follow(const StreamSegment& segment);
  std::optional<TerminateCode> follow_tagged(const StreamSegment& segment);

  std::array<uint32_t, kQueues> next_msn_{1, 1, 1, 1};  // RFC 5041 section 5.3: the first is 1
  uint32_t next_offset_ = 0;                            // on queue 0
  bool inside_send_ = false;                            // of a message on queue 0
  bool inside_tagged_ = false;
  Opcode send_opcode_ = Opcode::send;  // inside a message: as its first segment said
  Opcode tagged_opcode_ = Opcode::rdma_write;
};

}  // namespace diwarp::rdmap
