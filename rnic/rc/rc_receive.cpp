// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_receive.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <utility>

#include "ddp/placement.h"
#include "mpa/fpdu.h"
#include "rdmap/terminate.h"
#include "rnic/engine/engine.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

/// What is read at once leaves room in the engine's buffer to complete the FPDU that it cuts.
constexpr size_t kReadMost = kStreamBufferBytes - PartialFpduBuffer::kWholeFpdu;

/// Of the next FPDU: what tells how to go on.
constexpr size_t kHeaderBytes = mpa::kLengthBytes + ddp::kUntaggedHeaderBytes;

}  // namespace

bool RcReceive::goes_to_receive(rdmap::Opcode opcode) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(opcode);
  return !info.tagged && info.queue_number == rdmap::kSendQueue;
}

/// When TCP gives a peer up, the kernel reports the last ICMP error instead, if there was one.
RcEnd end_of_stream(int error) {
  const bool silent = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
  // guard(silent-peers): => static_cast<void>(silent); return RcEnd::lost;
  return silent ? RcEnd::timed_out : RcEnd::lost;
}

void RcReceive::start(const mpa::NegotiatedParameters& parameters, bool initiator,
                      ConstBytes leftover) {
  deframer_ = mpa::Deframer(parameters.crc, parameters.receive_markers);
  ready_ = initiator ? ReadyToReceive::none : parameters.ready;
  discards_ = discarded_ = held_ = false;
  heard_ = initiator;
  holds_ = policy_ == ReceiveNotReady::hold;  // guard(policy-terminate): => holds_ = true;
  end_ = RcEnd::none;
  fault_.reset();
  offending_held_ = offending_length_ = 0;
  receiver_ = {};  // guard(rows:msn-per-stream)
  direct_placement_.reset();
  expects_long_ = 0;
  parts_.counters.add(Counter::rc_rx_bytes, leftover.size());
  within_memory([&] {
    partial_fpdus_.assign(leftover);  // guard(rows:leftover-first): leftover => {}
    return end_;
  });
}

/// What comes may take memory: for unfinished FPDUs, and for the peer's requests. Where there is
/// none the connection ends, for nothing of a stream can be left out.
template <class Work>
RcEnd RcReceive::within_memory(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    parts_.counters.add(Counter::drop_no_memory);
    end(RcEnd::no_memory, fault::kLocalCatastrophic, {});
    return end_;
  }
}

RcEnd RcReceive::read(llp::Stream& stream, Bytes buffer) {
  entry_checked_ = false;
  came_ = 0;
  const bool long_is_cut = !partial_fpdus_.empty() && needed_ >= kLongFpdu;
  return within_memory([&] {
    if (direct_placement_) return read_direct_placement(stream, buffer);
    return long_is_cut ? read_cut(stream, buffer) : read_ahead(stream, buffer);
  });
}

/// The rest of a long FPDU comes where its beginning is, and what follows into the buffer.
RcEnd RcReceive::read_cut(llp::Stream& stream, Bytes buffer) {
  assert(needed_ > partial_fpdus_.size());
  const size_t rest = needed_ - partial_fpdus_.size();
  const size_t behind = deframer_.uses_beginnings() ? kHeaderBytes : kReadMost;
  const std::array<Bytes, 2> room{partial_fpdus_.room(rest), buffer.first(behind)};
  if (!book(stream.receive_into(room))) return conclude();
  partial_fpdus_.add(std::min(came_, rest));
  partial_fpdus_.drop(consume(partial_fpdus_.bytes()));
  if (came_ <= rest) {
    if (begin_direct_placement(partial_fpdus_.bytes())) partial_fpdus_.assign({});
    return conclude();
  }
  if (partial_fpdus_.empty()) return take_read(stream, buffer, came_ - rest);
  assert(held_ || end_ != RcEnd::none);
  partial_fpdus_.append(buffer.first(came_ - rest));
  return conclude();
}

RcEnd RcReceive::read_ahead(llp::Stream& stream, Bytes buffer) {
  const ConstBytes front = partial_fpdus_.bytes();
  assert(front.size() < kLongFpdu);
  const size_t wanted = expects_long_ != 0 ? kReadBeforeLong : kReadMost - front.size();
  if (!pull(stream, buffer.subspan(front.size(), wanted))) return conclude();
  std::copy(front.begin(), front.end(), buffer.begin());
  return take_read(stream, buffer, front.size() + came_);
}

/// Takes what fills the front of the buffer, and of the FPDU that it cuts the rest, if that is
/// there.
RcEnd RcReceive::take_read(llp::Stream& stream, Bytes buffer, size_t filled) {
  size_t taken = consume(buffer.first(filled));
  const bool cut = end_ == RcEnd::none && !held_ && taken != filled;
  const size_t before = came_;
  if (cut && begin_direct_placement(buffer.subspan(taken, filled - taken)))
    taken = filled;
  else if (cut && pull(stream, buffer.subspan(filled, needed_ - (filled - taken)))) {
    filled += came_ - before;
    taken += consume(buffer.first(filled).subspan(taken));
  }
  partial_fpdus_.assign(buffer.subspan(taken, filled - taken));
  return conclude();
}

RcEnd RcReceive::give_up_waiting() {
  holds_ = false;
  return resume();
}

RcEnd RcReceive::resume() {
  held_ = false;
  entry_checked_ = false;
  if (end_ != RcEnd::none) return end_;
  return within_memory([this] { return resume_partial_fpdus(); });
}

RcEnd RcReceive::resume_partial_fpdus() {
  partial_fpdus_.drop(consume(partial_fpdus_.bytes()));
  return end_;
}

/// An end of the stream is in order only between two messages.
RcEnd RcReceive::conclude() {
  // guard(rc): without && receiver_.at_boundary()
  // guard(rc): without partial_fpdus_.empty() &&
  // guard(direct-placement): without !direct_placement_ &&
  const bool between_messages =
      partial_fpdus_.empty() && !direct_placement_ && receiver_.at_boundary();
  // guard(rows:end-inside-message)
  if (end_ == RcEnd::closed && !between_messages) end_ = RcEnd::lost;
  return end_;
}

/// True if bytes came.
bool RcReceive::pull(llp::Stream& stream, Bytes room) { return book(stream.receive(room)); }

bool RcReceive::book(const llp::IoResult& result) {
  if (result.status == llp::IoStatus::closed) end_ = RcEnd::closed;
  if (result.status == llp::IoStatus::failed) end_ = end_of_stream(result.error);
  if (result.status != llp::IoStatus::ok) return false;
  came_ += result.bytes;
  parts_.counters.add(Counter::rc_rx_bytes, result.bytes);
  return true;
}

/// Takes whole FPDUs from the front while it may. Returns how many bytes they had.
size_t RcReceive::consume(ConstBytes bytes) {
  size_t done = 0;
  for (;;) {
    const mpa::Deframed framed = deframer_.next(bytes.subspan(done));
    needed_ = framed.needed;
    // guard(rc)
    // guard(rows:crc-error-code): fault::kBadCrc => fault::kUnspecified
    // guard(rows:nothing-after-error): end(RcEnd::bad_crc, fault::kBadCrc, {}); => {
    //     end(RcEnd::bad_crc, fault::kBadCrc, {}); done +=
    //     mpa::fpdu_bytes(std::to_integer<size_t>(bytes[done + 1])); continue; }
    if (framed.status == mpa::DeframeStatus::bad_crc) end(RcEnd::bad_crc, fault::kBadCrc, {});
    // guard(rows:marker-error-code): fault::kBadMarker => fault::kUnspecified
    if (framed.status == mpa::DeframeStatus::bad_marker)
      end(RcEnd::protocol_error, fault::kBadMarker, {});  // guard(marker-pointer)
    if (framed.status != mpa::DeframeStatus::fpdu) return done;
    heard_ = true;
    // guard(rows:nothing-after-error): => take(framed.ulpdu);
    if (!take(framed.ulpdu)) return done;
    deframer_.step(framed.consumed);
    if (expects_long_ != 0) --expects_long_;
    if (framed.consumed >= kLongFpdu && deframer_.uses_beginnings()) expects_long_ = kExpectLong;
    done += framed.consumed;
    parts_.counters.add(Counter::rc_rx_fpdus);
  }
}

/// False if it stays where it is: held, or the connection ends.
bool RcReceive::take(ConstBytes ulpdu) {
  rdmap::StreamReceiver next = receiver_;
  const rdmap::StreamReceiver::Result checked = next.accept(ulpdu);
  if (!check(checked.fault, ulpdu)) return false;  // guard(rc)
  if (ready_ != ReadyToReceive::none) {
    receiver_ = next;
    return take_ready(checked.segment, ulpdu);
  }
  // guard(rows:immediate-takes-receive): ; if => && checked.segment.opcode !=
  //     rdmap::Opcode::immediate; if
  const bool starts = receiver_.at_send_start() && goes_to_receive(checked.segment.opcode);
  if (starts && !begin_message(ulpdu)) return false;
  receiver_ = next;
  return handle(checked.segment, ulpdu);
}

/// Whether the segment is the ready-to-receive message of this kind, which has no length (RFC 6581
/// section 9.2).
bool RcReceive::makes_ready(ReadyToReceive kind, const rdmap::StreamSegment& segment) {
  const bool empty = segment.last && segment.payload.empty();
  switch (kind) {
    case ReadyToReceive::none:
      break;
    case ReadyToReceive::send:
      return segment.opcode == rdmap::Opcode::send && empty;
    // guard(rows:ready-write-empty): without && empty
    // guard(rows:ready-stag): empty => empty && segment.stag == 1
    case ReadyToReceive::write:
      return segment.opcode == rdmap::Opcode::rdma_write && empty;
    // guard(rows:ready-read-empty): without && rdmap::decode_read_request(segment.payload).length
    //     == 0
    case ReadyToReceive::read:
      return segment.opcode == rdmap::Opcode::read_request &&
             rdmap::decode_read_request(segment.payload).length == 0;
  }
  return false;
}

/// The initiator's first message, which no application sees (RFC 6581 section 4.3). A Read is
/// answered like any other of no length.
bool RcReceive::take_ready(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  if (!makes_ready(ready_, segment))  // guard(rows:ready-checked): condition => false
    return end(RcEnd::protocol_error, fault::kNoMatchingReady, ulpdu);
  ready_ = ReadyToReceive::none;
  // guard(rows:ready-untold): => return (!goes_to_receive(segment.opcode) || begin_message(ulpdu))
  //     && handle(segment, ulpdu);
  return segment.opcode != rdmap::Opcode::read_request || handle(segment, ulpdu);
}

bool RcReceive::handle(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  using rdmap::MessageType;
  switch (rdmap::info_of(segment.opcode).type) {
    case MessageType::send:
      return place_send(segment, ulpdu);
    case MessageType::immediate:
      return take_immediate(segment);
    // guard(rows:write-untold): first if (begin_message(ulpdu)) finish(WcStatus::success);
    case MessageType::write:
      return check(place_write(segment), ulpdu);
    case MessageType::read_request:
      return check(parts_.responder.take(rdmap::decode_read_request(segment.payload)), ulpdu);
    case MessageType::atomic_request:
      return check(parts_.responder.take(rdmap::decode_atomic_request(segment.payload)), ulpdu);
    case MessageType::read_response:
      return check(parts_.requester.take_read_response(segment), ulpdu);
    case MessageType::atomic_response:
      return check(
          parts_.requester.take_atomic_response(rdmap::decode_atomic_response(segment.payload)),
          ulpdu);
    case MessageType::terminate:
      return end_terminated(segment);
    case MessageType::write_record:
      break;  // no stream has it
  }
  return true;
}

/// False, and the connection ends, if there is a fault.
bool RcReceive::check(const std::optional<TerminateCode>& found, ConstBytes ulpdu) {
  return !found || end(RcEnd::protocol_error, *found, ulpdu);
}

/// Always false.
bool RcReceive::end(RcEnd reason, TerminateCode code, ConstBytes ulpdu) {
  end_ = reason;
  fault_ = code;
  offending_held_ = 0;
  keep_offending(ulpdu);
  offending_length_ = ulpdu.size();
  return false;
}

/// Behind what is kept, as far as there is room.
void RcReceive::keep_offending(ConstBytes headers) {
  const size_t count = std::min(headers.size(), offending_.size() - offending_held_);
  std::copy_n(headers.begin(), count, offending_.begin() + offending_held_);
  offending_held_ += count;
}

/// Always false. What the Terminate says is kept as the fault.
bool RcReceive::end_terminated(const rdmap::StreamSegment& segment) {
  const std::optional<rdmap::Terminate> terminate = rdmap::parse_terminate(segment.payload);
  // guard(rows:terminate-malformed): end(RcEnd::terminated, fault::kUnspecified, {}) => true
  if (!terminate) return end(RcEnd::terminated, fault::kUnspecified, {});
  end(RcEnd::terminated, terminate->code, terminate->ddp_header);
  keep_offending(terminate->rdmap_header);
  return false;
}

// --- Writes.

/// Everything is checked before a byte is written. A Write of no length writes nothing, and what it
/// names is not looked at (RFC 5041 section 5.1).
std::optional<TerminateCode> RcReceive::place_write(const rdmap::StreamSegment& segment) const {
  if (segment.length() == 0) return std::nullopt;  // guard(rows:zero-length-write)
  const auto checked = check_write(segment);
  // guard(rc): condition => false
  // guard(rows:write-checks): condition => checked.region == nullptr
  // guard(rows:check-write-before-placing): first if (checked.region != nullptr)
  //     std::ranges::copy(segment.payload, checked.region->memory);
  if (checked.fault != ddp::RegionFault::none) return tagged_fault(checked.fault);
  checked.target.place(0, segment.payload);  // guard(rows:write-placed)
  return std::nullopt;
}

// --- Messages for posted receives.

bool RcReceive::begin_message(ConstBytes ulpdu) {
  entry_ = discarded_ ? nullptr : parts_.receives.take_receive();
  discarded_ = entry_ == nullptr && discards_;
  if (entry_ == nullptr && !discards_) {
    held_ = holds_ && !parts_.receives.await();  // guard(rc): => held_ = false;
    if (held_) return false;                     // guard(rows:held-before-answers)
    entry_ = parts_.receives.take_receive();
    // guard(rows:send-without-receive)
    if (entry_ == nullptr) return end(RcEnd::bad_receive, fault::kNoBuffer, ulpdu);
  }
  entry_checked_ = false;
  return true;
}

bool RcReceive::place_send(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  if (entry_ == nullptr) return true;
  // guard(rows:send-too-long): condition => false
  if (!entry_->buffer().holds(segment.message_offset, segment.length())) {
    // guard(rows:check-send-before-placing): first ddp::scatter(entry_->sges(),
    //     segment.message_offset, segment.payload.first(entry_->capacity -
    //     segment.message_offset));
    finish(WcStatus::local_length_error);
    return end(RcEnd::protocol_error, fault::kMessageTooLong, ulpdu);
  }
  // guard(rc): condition => false
  if (!entry_checked_ && !parts_.protection.may_write(entry_->sges())) {
    finish(WcStatus::local_protection_error);
    return end(RcEnd::bad_receive, fault::kLocalCatastrophic, {});
  }
  entry_checked_ = true;
  parts_.protection.checked_target(entry_->sges()).place(segment.message_offset, segment.payload);
  // guard(rows:deliver-when-whole): without !segment.last ||
  return !segment.last || deliver(segment, ulpdu);
}

bool RcReceive::deliver(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(segment.opcode);
  // guard(peer-invalidates): invalidate_for_peer => invalidate
  if (info.invalidates &&  // guard(rows:invalidated-before-delivery): info.invalidates => false
      parts_.protection.invalidate_for_peer(segment.invalidate_stag) != ddp::RegionFault::none) {
    finish(WcStatus::general_error);
    return end(RcEnd::protocol_error, fault::kStagNotInvalidated, ulpdu);
  }
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv;
  completion.solicited = info.solicited;  // guard(rows:send-tells)
  completion.invalidated = info.invalidates;
  completion.invalidated_stag = segment.invalidate_stag;  // guard(rows:send-tells)
  // guard(rows:send-tells)
  // guard(rows:length-told): without segment.message_offset +
  completion.byte_count = static_cast<uint32_t>(segment.message_offset + segment.length());
  complete(completion);
  return true;
}

/// Immediate data take a receive and write nothing into it (RFC 7306 section 6).
bool RcReceive::take_immediate(const rdmap::StreamSegment& segment) {
  if (entry_ == nullptr) return true;
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv_immediate;
  completion.solicited = rdmap::info_of(segment.opcode).solicited;
  completion.immediate = rdmap::decode_immediate(segment.payload);  // guard(rows:immediate-told)
  completion.byte_count = static_cast<uint32_t>(segment.payload.size());
  complete(completion);
  return true;
}

void RcReceive::abandon(WcStatus status) {
  // guard(direct-placement): => const bool only_begun = false;
  // guard(direct-placement): => const bool only_begun = direct_placement_.has_value();
  const bool only_begun = direct_placement_ && direct_placement_->took_receive;
  if (only_begun) return give_back();
  forget();
  finish(status);
}

/// What came of an unfinished FPDU, and the memory that was needed for it.
void RcReceive::forget() {
  direct_placement_.reset();
  partial_fpdus_.release();
  deframer_ = {};
}

void RcReceive::finish(WcStatus status) {
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv;
  completion.status = status;
  if (entry_ != nullptr) complete(completion);
}

void RcReceive::complete(const WorkCompletion& completion) {
  parts_.receives.complete(*entry_, completion);
  entry_ = nullptr;
}

void RcReceive::give_back() {
  forget();
  if (entry_ != nullptr) parts_.receives.give_back(*entry_);
  entry_ = nullptr;
}

}  // namespace diwarp::rnic
