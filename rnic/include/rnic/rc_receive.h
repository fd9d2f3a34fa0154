// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "diwarp/attributes.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "mpa/agreement.h"
#include "rdmap/stream.h"
#include "rnic/rc_requester.h"
#include "rnic/rc_responder.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class RcQueuePair;

/// Why a connection ends.
enum class RcEnd : uint8_t {
  none,            ///< it does not
  closed,          ///< the peer ended the stream between two messages
  lost,            ///< the stream broke, or ended inside a message
  bad_crc,         ///< of an FPDU
  protocol_error,  ///< the peer broke a rule of MPA, DDP or RDMAP
  terminated,      ///< the peer sent a Terminate
  bad_receive,     ///< no receive was posted in time, or its memory may not be written
  bad_send,        ///< a request of this side failed
  bad_response,    ///< memory that the peer reads went away
};

/// What stays allocated for unfinished FPDUs of an idle queue pair, in bytes.
inline constexpr size_t kIdleCarry = 4096;

/// The receiving half of an RC queue pair: takes FPDUs off the stream, judges, places and delivers.
///
/// A message that finds no receive holds the stream: what was read behind it is carried, nothing
/// more is read, and TCP makes the peer wait. Or, if the queue pair wants that, it ends the
/// connection.
class RcReceive {
 public:
  /// Where segments go that are not for a posted receive.
  struct Parts {
    RcQueuePair& queue_pair;
    RcRequester& requester;
    RcResponder& responder;
    Counters& counters;
  };

  RcReceive(const Parts& parts, ReceiveNotReady policy) : parts_(parts), policy_(policy) {}

  /// For a new stream, of which `leftover` was read already: resume() takes it.
  void start(const mpa::Agreement& agreement, bool initiator, ConstBytes leftover);

  /// Reads once from the stream, through `buffer`, and takes what is there. Not while held().
  RcEnd read(llp::Stream& stream, Bytes buffer);
  /// Bytes that came with the last read().
  size_t came() const { return came_; }

  /// Takes what is carried: after start(), or when there may be a receive for what is held.
  RcEnd resume();
  bool held() const { return held_; }
  /// The same, but a message that finds no receive now ends the connection.
  RcEnd give_up_waiting();
  /// A valid FPDU came, so that a responder may send.
  bool heard() const { return heard_; }
  /// From now on messages that find no receive are read and forgotten.
  void discard_unwanted() { discards_ = true; }

  /// Why the connection ends: what a Terminate says, and the segment that it is about.
  const std::optional<TerminateCode>& fault() const { return fault_; }
  ConstBytes offending() const { return offending_; }
  /// Bytes of the whole segment, of which offending() has the beginning.
  size_t offending_length() const { return offending_length_; }

  /// Completes the receive of an unfinished message.
  void finish(WcStatus status);
  /// Undoes the taking of that receive.
  void give_back();

  bool keeps_memory() const { return carry_.capacity() > kIdleCarry; }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim();

 private:
  RcEnd conclude(ConstBytes rest);
  bool pull(llp::Stream& stream, Bytes room);
  size_t consume(ConstBytes bytes);
  bool take(ConstBytes ulpdu);
  bool take_ready(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool handle(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool check(const std::optional<TerminateCode>& fault, ConstBytes ulpdu);

  bool begin_message(ConstBytes ulpdu);
  bool place_send(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool deliver(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool take_immediate(const rdmap::StreamSegment& segment);
  std::optional<TerminateCode> place_write(const rdmap::StreamSegment& segment) const;
  bool end_terminated(const rdmap::StreamSegment& segment);
  bool end(RcEnd reason, TerminateCode code, ConstBytes ulpdu);
  void complete(const WorkCompletion& completion);

  ConstBytes carried() const { return ConstBytes(carry_).subspan(carry_begin_); }
  void carry(ConstBytes rest);

  const Parts parts_;
  const ReceiveNotReady policy_;

  bool discards_ = false;
  bool holds_ = true;  // where no receive is posted
  bool held_ = false;
  bool heard_ = false;
  RcEnd end_ = RcEnd::none;
  std::optional<TerminateCode> fault_;
  std::vector<std::byte> offending_;
  size_t offending_length_ = 0;
  size_t came_ = 0;
  size_t needed_ = 0;  // bytes that the FPDU at the front takes, as far as known

  mpa::Deframer deframer_;
  rdmap::StreamReceiver receiver_;
  ReadyToReceive ready_ = ReadyToReceive::none;  // the first FPDU has to be this
  ReceiveEntry* entry_ = nullptr;  // of the message that is under way; null: it is discarded
  bool entry_judged_ = false;      // its memory was checked in this call

  std::vector<std::byte> carry_;  // read, but not yet taken, from carry_begin_ on
  size_t carry_begin_ = 0;
  bool carry_used_ = false;  // since the last trim()
};

}  // namespace diwarp::rnic
