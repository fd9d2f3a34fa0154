// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "ddp/header.h"
#include "rdmap/opcodes.h"

/// RDMAP messages on a reliable stream (RFC 5040), one ULPDU at a time.
namespace diwarp::rdmap {

/// What a ULPDU is found to be. The faults are those of RFC 5041 section 7.1 and RFC 5040 section
/// 7.1 and end the connection.
enum class StreamFault : uint8_t {
  none,
  truncated,  ///< shorter than its header
  ddp_version,
  rdmap_version,
  opcode,  ///< unknown, not allowed here, not with this form of header, or another than
           ///< the message began with
  queue_number,
  msn,             ///< not the next one of its queue
  message_offset,  ///< not where the last segment ended
  too_long,        ///< longer than kMaxMessage, or (told by the caller) than the receive it found
  terminated,      ///< the peer sent a Terminate
};

/// One untagged segment of a Send, in host order.
struct StreamSegment {
  bool solicited = false;
  bool last = false;
  uint32_t msn = 0;
  uint32_t message_offset = 0;
  ConstBytes payload = {};
};

/// Writes the header of a Send segment (18 bytes) to the front of `out`; returns bytes written.
size_t encode_send_header(const StreamSegment& segment, Bytes out);

/// The receiving half of one RDMAP stream: headers, MSN and MO rules (RFC 5041 section 5.3: on a
/// stream segments arrive in order, so MO must continue exactly).
class StreamReceiver {
 public:
  struct Result {
    StreamFault fault = StreamFault::none;
    /// Without fault: a Send segment to place and, if last, to deliver.
    StreamSegment segment = {};
  };

  /// Judges the next ULPDU. With a fault the stream is over.
  Result accept(ConstBytes ulpdu);

  /// True if the next Send segment starts a new message.
  bool at_message_start() const { return !inside_; }

 private:
  StreamFault follow(const StreamSegment& segment);

  uint32_t next_msn_ = 1;  // RFC 5041 section 5.3: the first MSN of each queue is 1
  uint32_t next_offset_ = 0;
  bool inside_ = false;     // of a message
  bool solicited_ = false;  // inside a message: what its first segment said
};

}  // namespace diwarp::rdmap
