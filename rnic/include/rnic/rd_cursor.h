// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dgram/sender.h"
#include "rdmap/datagram.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

/// A Read Request that a peer sent.
struct InboundRead {
  InboundRead* next = nullptr;
  uint32_t index = 0;
  rdmap::ReadRequest request;
  bool cut = false;     ///< its response was sent to the end
  bool failed = false;  ///< the rest of the response is a failure
  TerminateCode code;
};

/// The part of a message that one datagram carries.
struct RdPart {
  dgram::TxTag tag;   ///< its object: a Send's, Write-Record's or Read's place in the send queue, or
                      ///< the InboundRead's index
  bool skip = false;  ///< it closes a message that was given up before its end
};

/// How far a peer's work has been cut into datagrams. A copy of it plans a burst.
struct RdCursor {
  SendEntry* entry = nullptr;  ///< the next to be cut; null: none is posted
  uint64_t offset = 0;
  InboundRead* inbound = nullptr;  ///< the same of responses
  uint32_t inbound_offset = 0;
  uint32_t requests = 0;      ///< Read Requests that are unanswered
  uint32_t request_msn = 0;   ///< of the next one
  bool inbound_next = false;  ///< whose turn it is, where there are both
  std::optional<dgram::MessageName> closing = {};  ///< a skip is to close it, before all else

  bool has_work() const { return entry != nullptr || inbound != nullptr || closing; }
  /// What the next datagram carries, at most `segment` bytes of a request, or `response` of a
  /// response. Nothing: all is cut, or waits for responses.
  std::optional<RdPart> next(const SendQueue& sends, size_t segment, size_t response) const;
  /// It was sent, or planned.
  void advance(const RdPart& part);

 private:
  RdPart next_response(size_t response) const;
  RdPart next_of_entry(const SendQueue& sends, size_t segment) const;
};

}  // namespace diwarp::rnic
