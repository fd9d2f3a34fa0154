// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "dgram/tx_tag.h"
#include "rdmap/datagram.h"
#include "rnic/queues/work_queue.h"

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
  dgram::TxTag tag;  ///< its object: a Send's, Write-Record's or Read's place in the send queue, or
                     ///< the InboundRead's index
  bool skip = false;  ///< it closes a message that was given up before its end
};

/// How far a peer's work has been cut into datagrams. A copy of it plans a burst.
class RdCursor {
 public:
  bool has_work() const { return entry_ != nullptr || inbound_ != nullptr || closing_; }
  bool has_response() const { return inbound_ != nullptr; }
  /// The request to be cut next; null: none is posted.
  const SendEntry* entry() const { return entry_; }
  /// Whether nothing is cut of the requests that begin with `first`.
  bool at_beginning(const SendEntry* first) const { return entry_ == first && offset_ == 0; }
  /// Whether a part of the request is cut, and not all of it.
  bool is_within(const SendEntry& entry) const { return entry_ == &entry && offset_ != 0; }

  /// The content of the next datagram, at most `segment` bytes of a request, or `response` of a
  /// response. Nothing: all is cut, or waits for responses.
  std::optional<RdPart> next(const SendQueue& sends, size_t segment, size_t response) const;
  /// It was sent, or planned.
  void advance(const RdPart& part);

  // --- What there is to be cut.

  /// The last of the requests, or of the Reads to be answered, was added.
  void added(SendEntry& entry);
  void added(InboundRead& read);
  /// It is over. It must still be in its list.
  void remove(const SendEntry& entry);
  void remove(const InboundRead& read);
  /// A skip is to close this message, before all else.
  void close(const dgram::MessageName& message) { closing_ = message; }
  void close_nothing() { closing_.reset(); }
  /// All requests are cut anew; Reads to be answered are cut no more.
  void rewind(SendEntry* first);

  // --- The places for Read Requests that are unanswered.

  void free_place() { --requests_; }
  void free_all_places() { requests_ = 0; }

 private:
  RdPart next_response(size_t response) const;
  RdPart next_of_entry(const SendQueue& sends, size_t segment) const;

  SendEntry* entry_ = nullptr;
  uint64_t offset_ = 0;
  InboundRead* inbound_ = nullptr;
  uint32_t inbound_offset_ = 0;
  uint32_t requests_ = 0;      // Read Requests that are unanswered
  bool inbound_next_ = false;  // whose turn it is, where there are both
  std::optional<dgram::MessageName> closing_ = {};
};

}  // namespace diwarp::rnic
