// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "ddp/segmentation.h"
#include "diwarp/connect_options.h"
#include "diwarp/types.h"
#include "rdmap/opcodes.h"
#include "rnic/rc/burst_ring.h"
#include "rnic/rc/rc_message.h"
#include "rnic/rc/rc_transmit_context.h"

namespace diwarp::rnic {

/// The STag in a ready-to-receive message. No receiver looks at it.
inline constexpr STag kReadyStag = 1;

/// The messages that RcTransmit, its owner, sends: which one comes next, and what its headers say.
/// They are the send queue's and the answers to the peer's requests, which take turns; one is
/// framed to its end before the next begins. It keeps those that are not wholly on the stream.
class RcMessages {
 public:
  /// What the try to begin a message led to.
  enum class Outcome : uint8_t {
    message,
    nothing,       ///< there is none, or a response must come first
    later,         ///< what is framed must be on the stream first
    bad_send,      ///< the oldest send failed: it may not be read, or not be done
    bad_response,  ///< memory that the peer reads may not be read any more
  };
  struct Begun {
    Outcome outcome = Outcome::nothing;
    WcStatus status = WcStatus::success;  ///< bad_send: why
  };
  /// What the stream is not done with.
  struct Outstanding {
    bool framed = false;     ///< FPDUs that it does not have yet
    bool zero_copy = false;  ///< memory of requests, which it reads
  };

  /// For a new stream. Only the initiator of a connection may send at once.
  void start(ReadyToReceive ready, bool initiator);
  /// The stream is gone: nothing is kept of what was to be sent on it.
  void forget();
  /// As BurstRing has it.
  void use(std::span<RcMessage> memory) { ring_.use(memory); }

  /// The initiator's first FPDU came: the responder may send (RFC 5044 section 7.1.2).
  void allow() { allowed_ = true; }
  bool allowed() const { return allowed_; }

  /// There is something to frame or to send, or may be.
  bool has_work(const RcTransmitContext& context) const;
  /// Adds the ready-to-receive message, if it is to be sent and was not added.
  void add_ready();
  /// Adds the next message. Not while framing().
  Begun begin(const RcTransmitContext& context, Outstanding outstanding);

  bool empty() const { return ring_.empty(); }
  size_t size() const { return ring_.size(); }
  const RcMessage& at(size_t index) const { return ring_.at(index); }
  /// The one that is framed now, or was last.
  const RcMessage& back() { return ring_.back(); }
  /// It has more to frame, from next_offset() on.
  bool framing() const { return framing_; }
  uint64_t next_offset() const { return next_offset_; }
  /// This segment of it was framed.
  void framed(const ddp::Segment& segment) {
    next_offset_ += segment.length;
    // guard(rows:empty-message-sent): !segment.last => !segment.last || ring_.back().length == 0
    framing_ = !segment.last;
  }
  /// The oldest message is wholly on the stream. Those of the send queue are popped there first.
  void pop() {
    if (ring_.at(0).origin == RcMessage::Origin::send_queue) --next_entry_;
    ring_.pop();
  }

 private:
  RcMessage& add(RcMessage::Origin origin);
  void set_header(RcMessage& message, rdmap::Opcode opcode);
  Begun begin_response(const RcTransmitContext& context);
  bool describe_response(const rdmap::ReadRequest& request, const RcResponder& responder);
  bool describe_response(const rdmap::AtomicRequest& request, const RcResponder& responder);
  Begun begin_send(const RcTransmitContext& context, Outstanding outstanding);
  void describe(const SendEntry& entry, const RcTransmitContext& context);

  BurstRing<RcMessage> ring_;  // the last one may have more to frame
  uint64_t next_offset_ = 0;   // where that goes on
  uint64_t next_entry_ = 0;    // place in the send queue of what comes after
  std::array<uint32_t, rdmap::kQueues> next_msn_{1, 1, 1, 1};
  bool framing_ = false;  // the last one has more to frame
  bool responded_last_ = false;
  ReadyToReceive ready_ = ReadyToReceive::none;  // the first message is to be this
  bool allowed_ = false;
};

}  // namespace diwarp::rnic
