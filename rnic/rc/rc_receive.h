// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/connect_options.h"
#include "diwarp/stream_options.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "mpa/negotiated_parameters.h"
#include "rdmap/stream_receiver.h"
#include "rnic/queues/work_queue.h"
#include "rnic/rc/partial_fpdu_buffer.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_responder.h"

namespace diwarp::rnic {

class ReceiveBuffers;

/// Why a connection ends.
enum class RcEnd : uint8_t {
  none,            ///< it does not
  closed,          ///< the peer ended the stream between two messages
  lost,            ///< the stream broke, or ended inside a message
  timed_out,       ///< the peer's TCP answers no more
  bad_crc,         ///< of an FPDU
  protocol_error,  ///< the peer broke a rule of MPA, DDP or RDMAP
  terminated,      ///< the peer sent a Terminate
  bad_receive,     ///< no receive was posted in time, or its memory may not be written
  bad_send,        ///< a request of this side failed
  bad_response,    ///< memory that the peer reads went away
  no_memory,       ///< for what the peer sent
};

/// The end that this errno of the stream's means.
RcEnd end_of_stream(int error);

// Tunables of RC reception.

/// FPDUs of so many bytes and more are long: what was cut of them is completed where its beginning
/// lies. Of a ULPDU of which so many bytes are still to come, these are read directly into the
/// application's memory, where that may be. For less, a copy costs less than the additional system
/// call.
inline constexpr size_t kLongFpdu = 8192;
/// What is read at once while FPDUs are expected that go directly into memory: enough for a
/// header, and little to copy.
inline constexpr size_t kReadBeforeLong = 4096;
/// After a long FPDU the next ones are expected to be long as well, until so many were not: a
/// message may end with a short one.
inline constexpr uint32_t kExpectLong = 4;

/// The receiving half of an RC queue pair: takes FPDUs off the stream, checks, places and delivers.
///
/// A message that finds no receive holds the stream: what was read after it is kept, nothing
/// more is read, and TCP makes the peer wait. Or, if the queue pair wants that, it ends the
/// connection.
///
/// FPDUs are read together, as many as there are, into the engine's buffer. With CRCs (or markers)
/// nothing may be placed before an FPDU is whole: a long one that is cut waits in the queue pair's
/// own memory, and its rest is read there. Without, all that is to be checked is in the header:
/// once that is there, the payload of a long FPDU is read directly into the application's memory.
class RcReceive {
 public:
  /// Where segments go that are not for a posted receive.
  struct Parts {
    ReceiveBuffers& receives;
    const ddp::ProtectionContext& protection;
    RcRequester& requester;
    RcResponder& responder;
    Counters& counters;
  };

  RcReceive(const Parts& parts, ReceiveNotReady policy) : parts_(parts), policy_(policy) {}

  /// For a new stream, of which `leftover` was read already: resume() takes it.
  void start(const mpa::NegotiatedParameters& parameters, bool initiator, ConstBytes leftover);

  /// Reads once from the stream, through `buffer`, and takes what is there. Not while held().
  RcEnd read(llp::Stream& stream, Bytes buffer);
  /// Bytes that came with the last read().
  size_t came() const { return came_; }

  /// Takes what is kept: after start(), or when there may be a receive for what is held.
  RcEnd resume();
  bool held() const { return held_; }
  /// The same, but a message that finds no receive now ends the connection.
  RcEnd give_up_waiting();
  /// This side may send FPDUs: it is the initiator, or MPA has found an FPDU of the initiator valid
  /// (RFC 5044 section 7.1.2, rule 4).
  bool heard() const { return heard_; }
  /// From now on a message that finds no receive is read and forgotten, and so are those behind it:
  /// what is delivered has no gap (RFC 5041 section 5.3), though a shared receive may be posted.
  void discard_unwanted() { discards_ = true; }

  /// Why the connection ends: what a Terminate says, and the segment that it is about.
  const std::optional<TerminateCode>& fault() const { return fault_; }
  ConstBytes offending() const { return ConstBytes(offending_).first(offending_held_); }
  /// Bytes of the whole segment, of which offending() has the beginning.
  size_t offending_length() const { return offending_length_; }

  /// The stream ends: frees what was kept of an unfinished FPDU, and completes the receive of an
  /// unfinished message. A message of which not one FPDU came to its end has none: what was taken
  /// for it is the next receive again.
  void abandon(WcStatus status);
  /// The same, but what was taken for a message is the next receive again in any case.
  void give_back();

  bool keeps_memory() const { return partial_fpdus_.keeps_memory(); }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim() { return partial_fpdus_.trim(); }

 private:
  /// A long FPDU whose payload is placed directly in memory while it comes.
  struct DirectPlacement {
    rdmap::StreamSegment segment;  // of its payload all is missing
    std::array<std::byte, ddp::kUntaggedHeaderBytes> header;
    size_t header_bytes = 0;
    size_t ulpdu_bytes = 0;
    size_t placed = 0;   // bytes of its payload
    size_t trailer = 0;  // bytes behind the payload that are still to come
    bool took_receive = false;

    ConstBytes header_view() const { return ConstBytes(header).first(header_bytes); }
  };

  /// What a Terminate tells of a segment, at most.
  static constexpr size_t kOffendingBytes = ddp::kUntaggedHeaderBytes + rdmap::kAtomicRequestBytes;

  static bool goes_to_receive(rdmap::Opcode opcode);
  template <class Work>
  RcEnd within_memory(Work&& work);
  RcEnd resume_partial_fpdus();
  void keep_offending(ConstBytes headers);
  static bool makes_ready(ReadyToReceive kind, const rdmap::StreamSegment& segment);
  RcEnd read_cut(llp::Stream& stream, Bytes buffer);
  RcEnd read_ahead(llp::Stream& stream, Bytes buffer);
  RcEnd take_read(llp::Stream& stream, Bytes buffer, size_t filled);
  RcEnd conclude();
  bool pull(llp::Stream& stream, Bytes room);
  bool book(const llp::IoResult& result);
  size_t consume(ConstBytes bytes);
  bool take(ConstBytes ulpdu);
  bool take_ready(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool handle(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool check(const std::optional<TerminateCode>& fault, ConstBytes ulpdu);

  bool begin_message(ConstBytes ulpdu);
  bool place_send(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool deliver(const rdmap::StreamSegment& segment, ConstBytes ulpdu);
  bool take_immediate(const rdmap::StreamSegment& segment);
  ddp::ProtectionContext::CheckedTarget check_write(const rdmap::StreamSegment& segment) const {
    // guard(rows:write-right-checked): Access::remote_write => Access::none
    return parts_.protection.check_placement(segment.stag, Access::remote_write,
                                             segment.tagged_offset, segment.length());
  }
  std::optional<TerminateCode> place_write(const rdmap::StreamSegment& segment) const;
  bool end_terminated(const rdmap::StreamSegment& segment);
  bool end(RcEnd reason, TerminateCode code, ConstBytes ulpdu);
  void forget();
  void finish(WcStatus status);
  void complete(const WorkCompletion& completion);

  bool begin_direct_placement(ConstBytes rest);
  std::optional<ddp::PlacementTarget> target_of(const rdmap::StreamSegment& segment,
                                                const ReceiveEntry* entry) const;
  RcEnd read_direct_placement(llp::Stream& stream, Bytes buffer);
  bool pull_direct_placement(llp::Stream& stream, const ddp::PlacementTarget& target, Bytes tail);
  void finish_direct_placement();
  RcEnd refuse_direct_placement();

  const Parts parts_;
  const ReceiveNotReady policy_;

  bool discards_ = false;
  bool discarded_ = false;  // a message was
  bool holds_ = true;       // where no receive is posted
  bool held_ = false;
  bool heard_ = false;
  RcEnd end_ = RcEnd::none;
  std::optional<TerminateCode> fault_;
  std::array<std::byte, kOffendingBytes> offending_;
  size_t offending_held_ = 0;
  size_t offending_length_ = 0;
  size_t came_ = 0;
  size_t needed_ = 0;  // bytes that the FPDU at the front takes, as far as known

  mpa::Deframer deframer_;
  rdmap::StreamReceiver receiver_;
  ReadyToReceive ready_ = ReadyToReceive::none;  // the first FPDU has to be this
  ReceiveEntry* entry_ = nullptr;  // of the message that is under way; null: it is discarded
  bool entry_checked_ = false;     // its memory was checked in this call

  PartialFpduBuffer partial_fpdus_;
  uint32_t expects_long_ = 0;  // of kExpectLong
  std::optional<DirectPlacement> direct_placement_;
};

}  // namespace diwarp::rnic
