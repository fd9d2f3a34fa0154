// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/bytes.h"
#include "ddp/placement.h"
#include "ddp/protection_context.h"
#include "diwarp/stream_options.h"
#include "rdmap/stream_receiver.h"
#include "rnic/queues/work_queue.h"
#include "rnic/rc/rc_termination.h"

namespace diwarp::rnic {

class ReceiveBuffers;

/// Delivers what comes on queue 0 of a stream, Sends and immediate data, to posted receives. One
/// message is under way at a time, and holds at most one receive. The receiving half owns it and
/// says in which order segments come. A fault goes to the termination that is given. With the
/// baton.
class RcDelivery {
 public:
  RcDelivery(ReceiveBuffers& receives, const ddp::ProtectionContext& protection,
             ReceiveNotReady policy)
      : receives_(receives), protection_(protection), policy_(policy) {}

  /// For a new stream.
  void start();

  /// A message found no receive, and the stream waits for one.
  bool held() const { return held_; }
  /// begin() is to be tried again.
  void resume() { held_ = entry_checked_ = false; }
  /// From now on a message that finds no receive ends the connection.
  void stop_holding() { holds_ = false; }
  /// From now on a message that finds no receive is read and forgotten, and so are those after it:
  /// what is delivered has no gap (RFC 5041 section 5.3), though a shared receive may be posted.
  void discard_unwanted() { discards_ = true; }
  /// The application may have changed its regions: the receive's memory is checked with the next
  /// segment.
  void check_again() { entry_checked_ = false; }

  /// Takes a receive for the message that this ULPDU begins. False: held(), or the connection ends.
  bool begin(ConstBytes ulpdu, RcTermination& termination);
  /// Places a segment of a Send, the last of which completes the receive. False: the connection
  /// ends.
  bool place(const rdmap::StreamSegment& segment, ConstBytes ulpdu, RcTermination& termination);
  /// All of a Send is placed. False: the connection ends.
  bool deliver(const rdmap::StreamSegment& segment, ConstBytes ulpdu, RcTermination& termination);

  /// Where a segment's payload goes if it may be placed now. `starts`: it begins a message, for
  /// which take_receive() would follow.
  std::optional<ddp::PlacementTarget> target_of(const rdmap::StreamSegment& segment,
                                                bool starts) const;
  /// Takes the receive that target_of() has found.
  void take_receive();

  /// Completes the receive of the message that is under way, if there is one.
  void finish(WcStatus status);
  /// The same of a message that writes nothing into it.
  void finish(const ReceiveOutcome& outcome);
  /// It is the next receive again.
  void give_back();

 private:
  ReceiveBuffers& receives_;
  const ddp::ProtectionContext& protection_;
  const ReceiveNotReady policy_;
  bool discards_ = false;
  bool discarded_ = false;  // a message was
  bool holds_ = true;       // where no receive is posted
  bool held_ = false;
  bool entry_checked_ = false;     // its memory was, since check_again()
  ReceiveEntry* entry_ = nullptr;  // of the message that is under way; null: it is discarded
};

}  // namespace diwarp::rnic
