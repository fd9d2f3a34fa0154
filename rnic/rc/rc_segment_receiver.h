// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "base/bytes.h"
#include "ddp/placement.h"
#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/connect_options.h"
#include "diwarp/stream_options.h"
#include "rdmap/stream_receiver.h"
#include "rnic/rc/rc_delivery.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_responder.h"
#include "rnic/rc/rc_termination.h"

namespace diwarp::rnic {

class ReceiveBuffers;

/// What RC reception does above MPA: checks the ULPDUs of a stream, which come in order, and hands
/// each on by its opcode. A fault ends the connection, in termination(), before a byte of the
/// segment is placed. RcReceive owns it. With the baton.
class RcSegmentReceiver {
 public:
  /// Where segments go.
  struct Parts {
    ReceiveBuffers& receives;
    const ddp::ProtectionContext& protection;
    RcRequester& requester;
    RcResponder& responder;
    const LoggedCounters* log = nullptr;  ///< null: nothing is told
  };

  /// A segment whose payload is placed while it comes.
  struct Direct {
    rdmap::StreamSegment segment;  ///< of its payload all is missing
    size_t placed = 0;             ///< bytes of it that were there, and are in their place
    bool took_receive = false;     ///< for the message that it begins
  };

  RcSegmentReceiver(const Parts& parts, ReceiveNotReady policy)
      : delivery_(parts.receives, parts.protection, policy),
        protection_(parts.protection),
        requester_(parts.requester),
        responder_(parts.responder),
        log_(parts.log) {}

  /// For a new stream, whose first message has to be this.
  void start(ReadyToReceive ready);

  /// Takes a whole ULPDU. False if it stays where it is: no receive is there for it, or the
  /// connection ends.
  bool take(ConstBytes ulpdu);

  /// Takes a ULPDU of which `missing` bytes are still to come, if it is in order in all respects
  /// and its payload may be placed. Nothing, and nothing is changed, for any other.
  std::optional<Direct> begin_direct(ConstBytes ulpdu, size_t missing);
  /// Where its payload goes, if it still may.
  std::optional<ddp::PlacementTarget> target_of(const rdmap::StreamSegment& segment) const {
    return target_of(segment, false);
  }
  /// All of its payload is placed.
  void finish_direct(const rdmap::StreamSegment& segment, ConstBytes header, size_t ulpdu_bytes);
  /// Its memory has gone, or may not be written any more. The connection ends.
  void refuse_direct(const rdmap::StreamSegment& segment, ConstBytes header, size_t ulpdu_bytes);

  /// The stream is between two messages.
  bool at_boundary() const { return receiver_.at_boundary(); }

  RcDelivery& delivery() { return delivery_; }
  const RcDelivery& delivery() const { return delivery_; }
  RcTermination& termination() { return termination_; }
  const RcTermination& termination() const { return termination_; }

 private:
  bool take_ready(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool handle(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool check(const std::optional<TerminateCode>& fault, ConstBytes ulpdu);
  std::optional<TerminateCode> place_write(const rdmap::StreamSegment& segment) const;
  [[gnu::cold]] void trace(const rdmap::StreamSegment& segment) const;
  bool end_terminated(const rdmap::StreamSegment& segment);
  std::optional<ddp::PlacementTarget> target_of(const rdmap::StreamSegment& segment,
                                                bool starts) const;

  RcDelivery delivery_;
  RcTermination termination_;
  const ddp::ProtectionContext& protection_;
  RcRequester& requester_;
  RcResponder& responder_;
  const LoggedCounters* const log_;
  rdmap::StreamReceiver receiver_;
  ReadyToReceive ready_ = ReadyToReceive::none;  // the first message has to be this
};

}  // namespace diwarp::rnic
