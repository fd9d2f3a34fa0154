// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rdmap/stream_receiver.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The Reads and atomics of an RC queue pair that await a response. Responses come in the order of
/// the requests (RFC 5040 section 5.5), so the send queue's oldest waiting entry is the one that is
/// answered. With the baton.
class RcRequester {
 public:
  RcRequester(const ddp::ProtectionContext& protection, SendQueue& sends)
      : protection_(protection), sends_(sends) {}

  /// For a new stream that lets so many requests be outstanding.
  void start(uint16_t ord);

  uint16_t ord() const { return ord_; }
  bool idle() const { return outstanding_ == 0; }
  bool has_room() const { return outstanding_ < ord_; }

  /// Where the response to this request goes, as the peer is told; nothing where the memory may not
  /// be written.
  std::optional<RemoteMemory> sink(const SendEntry& entry) const;
  /// A request was framed. Returns its identifier (RFC 7306 section 5).
  uint32_t begin() {
    ++outstanding_;
    return next_id_++;
  }
  /// The same for a Read of no length that makes the peer ready (RFC 6581 section 4).
  void begin_ready() { ready_ = true; }

  /// A response came. A fault ends the connection; the request then has its status.
  std::optional<TerminateCode> take_read_response(const rdmap::StreamSegment& segment);
  /// Where the payload of a Read Response goes that is in order; nothing for any other.
  std::optional<ddp::PlacementTarget> target_of(const rdmap::StreamSegment& segment) const;
  /// It was placed.
  void placed(const rdmap::StreamSegment& segment);
  std::optional<TerminateCode> take_atomic_response(const rdmap::AtomicResponse& response);

  /// The peer ends the connection for this reason: it goes to the oldest request if that is meant.
  void refuse(const TerminateCode& code);

 private:
  /// Where a response goes: as the peer knows it, and here.
  struct Sink {
    RemoteMemory name;
    ddp::PlacementTarget target;
  };
  std::optional<Sink> check_sink(const SendEntry& entry) const;
  std::optional<TerminateCode> take_ready(const rdmap::StreamSegment& segment);
  std::optional<TerminateCode> check_response(const SendEntry& entry,
                                              const rdmap::StreamSegment& segment,
                                              const RemoteMemory& sink) const;
  TerminateCode fail(WcStatus status, TerminateCode code);
  void finish();

  const ddp::ProtectionContext& protection_;
  SendQueue& sends_;
  uint16_t ord_ = 0;
  uint16_t outstanding_ = 0;
  bool ready_ = false;        // a Read of no length, before all others
  uint64_t placed_ = 0;       // bytes of the oldest request's response
  uint32_t next_id_ = 0;      // of requests
  uint32_t answered_id_ = 0;  // of the oldest one
};

}  // namespace diwarp::rnic
