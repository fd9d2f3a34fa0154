// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dgram/handshake.h"
#include "dgram/receiver.h"
#include "dgram/sender.h"

namespace diwarp::dgram {

/// One side's protocol state of an association with a peer: the names of both ends, and the two
/// sequences of datagrams. It outlives an association: another one may follow, whose sequences
/// begin anew.
class Association {
 public:
  /// `window`: how many early datagrams may be kept, 1 to Receiver::kMaxWindow. `control`: of each
  /// association.
  explicit Association(uint32_t window, CongestionControl control = CongestionControl::bbr)
      : sender_(1, 0, control), receiver_(window), control_(control) {}

  Handshake& handshake() { return handshake_; }
  const Handshake& handshake() const { return handshake_; }
  Sender& sender() { return sender_; }
  const Sender& sender() const { return sender_; }
  Receiver& receiver() { return receiver_; }
  const Receiver& receiver() const { return receiver_; }

  /// Both ends have agreed on their names: both sequences begin. `own`: the incarnation that this
  /// side shows the peer. `peer_window`: as the peer's open told it; 0: it has not.
  void begin(uint32_t own, uint16_t peer_window) {
    sender_ = Sender(handshake_.first_sent(own), peer_window, control_);
    receiver_ = Receiver(receiver_.most_kept(), handshake_.first_received(own));
    receiver_.peer_told(peer_window);
  }
  /// Both sequences are over. Nothing may be kept, and the receiver's memory is given back.
  void end() {
    handshake_.close();
    sender_ = Sender(1, 0, control_);
    receiver_ = Receiver(receiver_.most_kept());
  }

 private:
  Handshake handshake_;
  Sender sender_;
  Receiver receiver_;
  CongestionControl control_;
};

}  // namespace diwarp::dgram
