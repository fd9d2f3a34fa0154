// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_segment_receiver.h"

#include <cassert>

#include "rdmap/terminate.h"
#include "rnic/context/counter_log.h"
#include "rnic/queues/message_log.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

bool goes_to_receive(rdmap::Opcode opcode) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(opcode);
  return !info.tagged && info.queue_number == rdmap::kSendQueue;
}

/// Whether the segment is the ready-to-receive message of this kind, which has no length (RFC 6581
/// section 9.2).
bool makes_ready(ReadyToReceive kind, const rdmap::StreamSegment& segment) {
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

/// Immediate data take a receive and write nothing into it (RFC 7306 section 6).
ReceiveOutcome outcome_of_immediate(const rdmap::StreamSegment& segment) {
  ReceiveOutcome outcome;
  outcome.opcode = WcOpcode::recv_immediate;
  outcome.solicited = rdmap::info_of(segment.opcode).solicited;
  outcome.immediate = rdmap::decode_immediate(segment.payload);  // guard(rows:immediate-told)
  outcome.byte_count = static_cast<uint32_t>(segment.payload.size());
  return outcome;
}

ddp::ProtectionContext::CheckedTarget check_write(const ddp::ProtectionContext& protection,
                                                  const rdmap::StreamSegment& segment) {
  // guard(rows:write-right-checked): Access::remote_write => Access::none
  return protection.check_placement(segment.stag, Access::remote_write, segment.tagged_offset,
                                    segment.length());
}

}  // namespace

void RcSegmentReceiver::start(ReadyToReceive ready) {
  ready_ = ready;
  delivery_.start();
  termination_.start();
  receiver_ = {};  // guard(rows:msn-per-stream)
}

bool RcSegmentReceiver::take(ConstBytes ulpdu) {
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
  if (starts && !delivery_.begin(ulpdu, termination_)) return false;
  receiver_ = next;
  return handle(checked.segment, ulpdu);
}

/// The initiator's first message, which no application sees (RFC 6581 section 4.3). A Read is
/// answered like any other of no length.
bool RcSegmentReceiver::take_ready(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  if (!makes_ready(ready_, segment))  // guard(rows:ready-checked): condition => false
    return termination_.end(RcEnd::protocol_error, fault::kNoMatchingReady, ulpdu);
  ready_ = ReadyToReceive::none;
  // guard(rows:ready-untold): => return (!goes_to_receive(segment.opcode) ||
  //     delivery_.begin(ulpdu, termination_)) && handle(segment, ulpdu);
  return segment.opcode != rdmap::Opcode::read_request || handle(segment, ulpdu);
}

/// If it is the last one of a message.
void RcSegmentReceiver::trace(const rdmap::StreamSegment& segment) const {
  if (segment.last && log_ != nullptr)
    message_log::received(log_->subject(), segment.opcode,
                          segment.message_offset + segment.length(), nullptr);
}

bool RcSegmentReceiver::handle(const rdmap::StreamSegment& segment, ConstBytes ulpdu) {
  if (log::shows(LogLevel::trace)) [[unlikely]]
    trace(segment);
  using rdmap::MessageType;
  switch (rdmap::info_of(segment.opcode).type) {
    case MessageType::send:
      return delivery_.place(segment, ulpdu, termination_);
    case MessageType::immediate:
      delivery_.finish(outcome_of_immediate(segment));
      return true;
    // guard(rows:write-untold): first if (delivery_.begin(ulpdu, termination_))
    //     delivery_.finish(WcStatus::success);
    case MessageType::write:
      return check(place_write(segment), ulpdu);
    case MessageType::read_request:
      return check(responder_.take(rdmap::decode_read_request(segment.payload)), ulpdu);
    case MessageType::atomic_request:
      return check(responder_.take(rdmap::decode_atomic_request(segment.payload)), ulpdu);
    case MessageType::read_response:
      return check(requester_.take_read_response(segment), ulpdu);
    case MessageType::atomic_response:
      return check(requester_.take_atomic_response(rdmap::decode_atomic_response(segment.payload)),
                   ulpdu);
    case MessageType::terminate:
      return end_terminated(segment);
    case MessageType::write_record:
      break;  // no stream has it
  }
  return true;
}

/// False, and the connection ends, if there is a fault.
bool RcSegmentReceiver::check(const std::optional<TerminateCode>& found, ConstBytes ulpdu) {
  return !found || termination_.end(RcEnd::protocol_error, *found, ulpdu);
}

/// Always false.
bool RcSegmentReceiver::end_terminated(const rdmap::StreamSegment& segment) {
  const std::optional<rdmap::Terminate> terminate = rdmap::parse_terminate(segment.payload);
  // guard(rows:terminate-malformed): termination_.end(RcEnd::terminated, fault::kUnspecified, {})
  //     => true
  if (!terminate) return termination_.end(RcEnd::terminated, fault::kUnspecified, {});
  return termination_.end_by_peer(*terminate);
}

/// Everything is checked before a byte is written. A Write of no length writes nothing, and what it
/// names is not looked at (RFC 5041 section 5.1).
std::optional<TerminateCode> RcSegmentReceiver::place_write(
    const rdmap::StreamSegment& segment) const {
  if (segment.length() == 0) return std::nullopt;  // guard(rows:zero-length-write)
  const auto checked = check_write(protection_, segment);
  // guard(rc): condition => false
  // guard(rows:write-checks): condition => checked.region == nullptr
  // guard(rows:check-write-before-placing): first if (checked.region != nullptr)
  //     std::ranges::copy(segment.payload, checked.region->memory);
  if (checked.fault != ddp::RegionFault::none) return rdmap::tagged_fault(checked.fault);
  checked.target.place(0, segment.payload);  // guard(rows:write-placed)
  return std::nullopt;
}

// --- Segments that are placed while they come.

std::optional<RcSegmentReceiver::Direct> RcSegmentReceiver::begin_direct(ConstBytes ulpdu,
                                                                         size_t missing) {
  if (ready_ != ReadyToReceive::none) return std::nullopt;
  rdmap::StreamReceiver next = receiver_;
  rdmap::StreamReceiver::Result checked = next.accept(ulpdu, missing);
  if (checked.fault) return std::nullopt;  // guard(direct-placement)
  rdmap::StreamSegment& segment = checked.segment;
  const bool starts = receiver_.at_send_start() && goes_to_receive(segment.opcode);
  const auto target = target_of(segment, starts);
  if (!target) return std::nullopt;  // guard(direct-placement): condition => false

  if (starts) delivery_.take_receive();
  receiver_ = next;
  const size_t placed = segment.payload.size();
  target->place(0, segment.payload);
  segment.missing = segment.length();
  segment.payload = {};
  return Direct{.segment = segment, .placed = placed, .took_receive = starts};
}

/// `starts`: the segment begins a message for which no receive is taken yet.
std::optional<ddp::PlacementTarget> RcSegmentReceiver::target_of(
    const rdmap::StreamSegment& segment, bool starts) const {
  if (goes_to_receive(segment.opcode)) return delivery_.target_of(segment, starts);
  if (segment.opcode == rdmap::Opcode::read_response) return requester_.target_of(segment);
  if (segment.opcode != rdmap::Opcode::rdma_write) return std::nullopt;
  const auto checked = check_write(protection_, segment);
  // guard(direct-placement): condition => false
  if (checked.fault != ddp::RegionFault::none) return std::nullopt;
  return checked.target;
}

void RcSegmentReceiver::finish_direct(const rdmap::StreamSegment& segment, ConstBytes header,
                                      size_t ulpdu_bytes) {
  if (log::shows(LogLevel::trace)) [[unlikely]]
    trace(segment);
  if (segment.opcode == rdmap::Opcode::read_response) requester_.placed(segment);
  if (!goes_to_receive(segment.opcode) || !segment.last) return;
  if (!delivery_.deliver(segment, header, termination_))
    termination_.set_offending_length(ulpdu_bytes);
}

/// handle() finds what is wrong and says it.
void RcSegmentReceiver::refuse_direct(const rdmap::StreamSegment& segment, ConstBytes header,
                                      size_t ulpdu_bytes) {
  handle(segment, header);
  assert(termination_.ended());
  termination_.set_offending_length(ulpdu_bytes);
}

}  // namespace diwarp::rnic
