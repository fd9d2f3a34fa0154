// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_delivery.h"

#include <algorithm>
#include <utility>

#include "base/byte_order.h"
#include "ddp/placement.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/record_table.h"
#include "rnic/datagram/send_completion.h"
#include "rnic/queues/message_log.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

dgram::MessageName message_of(const rdmap::DatagramSegment& segment) {
  using dgram::MessageKind;
  switch (rdmap::info_of(segment.opcode).type) {
    case rdmap::MessageType::write_record:
      return {MessageKind::write_record, segment.msn};
    case rdmap::MessageType::read_request:
      return {MessageKind::read_request, segment.msn};
    case rdmap::MessageType::read_response:
      return {MessageKind::read_response, segment.stag};
    default:
      return {MessageKind::send, segment.msn};
  }
}

/// Whether the segment is of a message whose rest is ignored. A message that begins voids no more.
bool is_voided(RdPeer& peer, const rdmap::DatagramSegment& segment) {
  if (segment.message_offset == 0) peer.inbound.ignore_nothing();
  return peer.inbound.ignores(message_of(segment));
}

/// Whether the segment is the next one of the message.
bool continues(const RdMessage& message, const rdmap::DatagramSegment& segment, uint32_t q_key) {
  return segment.msn == message.msn && segment.message_offset == message.placed &&
         segment.q_key == q_key && rdmap::MessageInfo::of(segment) == message.info;
}

}  // namespace

RdDelivery::Outcome RdDelivery::deliver(RdPeer& peer, dgram::RdKind kind, uint8_t flags,
                                        ConstBytes bytes, Time now) {
  if (kind == dgram::RdKind::skip) {
    skip(peer, dgram::decode_rd_skip(bytes));
    return Outcome::delivered;
  }
  if (kind == dgram::RdKind::failure) {
    const dgram::RdFailure failure = dgram::decode_rd_failure(bytes);
    requests_.take_failure(peer, failure.sink_stag, rdmap::terminate_code(failure.code));
    return Outcome::delivered;
  }
  const rdmap::ParsedSegment parsed = rdmap::parse_segment(flags, bytes);
  if (parsed.valid) {
    const Outcome outcome = deliver_segment(peer, parsed.segment, now);
    if (log::shows(LogLevel::trace) && outcome == Outcome::delivered) [[unlikely]]
      trace(peer, parsed.segment);
    return outcome;
  }
  counters_.add(parsed.drop_reason, peer.address());
  return refuse(peer, fault::kUnspecified, parsed.segment, now);
}

/// After the last segment of a message.
void RdDelivery::trace(const RdPeer& peer, const Segment& segment) const {
  if (segment.last)
    message_log::received(counters_.subject(), segment.opcode,
                          segment.message_offset + segment.payload.size(), &peer.address());
}

RdDelivery::Outcome RdDelivery::deliver_segment(RdPeer& peer, const Segment& segment, Time now) {
  switch (rdmap::info_of(segment.opcode).type) {
    case rdmap::MessageType::read_request:
      return deliver_request(peer, segment, now);
    case rdmap::MessageType::read_response:
      return conclude(peer, requests_.take_response(peer, segment), segment, now);
    case rdmap::MessageType::write_record:
      return deliver_record(peer, segment, now);
    default:
      return deliver_send(peer, segment, now);
  }
}

RdDelivery::Outcome RdDelivery::deliver_request(RdPeer& peer, const Segment& segment, Time now) {
  // A request of no bytes names no memory (RFC 5040 section 5.2).
  // guard(rd-guesses): without segment.request.length != 0 &&
  if (segment.request.length != 0 && stag_limit_.may_name_memory_at(peer, now) > now)
    return Outcome::stag_limit;  // guard(rd-guesses)
  // guard(explore): => close_abandoned(peer);
  if (!peer.inbound.repeats().repeats_request(segment.msn)) close_abandoned(peer);
  const Verdict verdict = responder_.take_request(peer, segment.request);
  if (segment.request.length != 0 && verdict.drop != Counter::drop_share)
    stag_limit_.note_verdict(peer, verdict, now);
  const bool no_memory = verdict.drop && !verdict.fault;
  if (!no_memory) {
    peer.inbound.repeats().delivered_request(segment.msn);
    return conclude(peer, verdict, segment, now);
  }
  counters_.add(*verdict.drop, peer.address());
  return Outcome::no_memory;
}

/// The rest of one message, and of no other, will not come.
void RdDelivery::skip(RdPeer& peer, const dgram::MessageName& message) {
  switch (message.kind) {
    case dgram::MessageKind::send:
      if (peer.inbound.is_message(message)) give_back(peer);  // guard(rd-skip): => give_back(peer);
      peer.inbound.ignore_rest(message);
      return;
    case dgram::MessageKind::write_record:
      records_.close(peer.source, message.number);
      peer.inbound.ignore_rest(message);
      return;
    case dgram::MessageKind::read_response:
      return requests_.take_skip(peer, message.number);
    case dgram::MessageKind::read_request:
      return;
  }
}

/// A drop without a fault is the end of it: the datagram has had its turn.
RdDelivery::Outcome RdDelivery::conclude(RdPeer& peer, const Verdict& verdict,
                                         const Segment& segment, Time now) {
  if (verdict.drop) counters_.add(*verdict.drop, peer.address());
  if (!verdict.fault) return Outcome::delivered;
  const dgram::MessageName message = message_of(segment);
  peer.inbound.refuse_message(message);
  skip(peer, message);
  return refuse(peer, *verdict.fault, segment, now);
}

/// The peer learns it from the refusal; an Error would tell it twice. A segment that cannot be
/// parsed is of no message that is known here, and ends none.
RdDelivery::Outcome RdDelivery::refuse(RdPeer& peer, TerminateCode code, const Segment& segment,
                                       Time now) {
  errors_.found(peer.address(), segment, code, 0, false, now);
  counters_.add(Counter::rd_refused, peer.address(), code);
  peer.inbound.refuse(code);
  return Outcome::refused;
}

void RdDelivery::abandon(RdPeer& peer) {
  interrupt(peer);
  records_.close_of(peer.source);
}

void RdDelivery::interrupt(RdPeer& peer) {
  give_back(peer);
  peer.inbound.forget_expired();
  records_.restart_of(peer.source);
}

void RdDelivery::expire(RdPeer& peer) {
  counters_.add(Counter::message_timeouts);
  peer.inbound.expire_message();
  give_back(peer);
}

// --- Receives that Sends hold while they are not whole.

void RdDelivery::take_receive(RdPeer& peer, ReceiveEntry& receive, const Segment& segment,
                              Time now) {
  receives_.take(receive);
  peer.inbound.begin_message(receive, segment, now);
  if (!segment.last) peer.host.hold_receive();
}

/// Null where there is none.
ReceiveEntry* RdDelivery::release_receive(RdPeer& peer) {
  if (!peer.inbound.has_message()) return nullptr;
  if (peer.inbound.has_share()) {
    peer.host.give_back_receive();
    receives_.share_given_back();
  }
  return peer.inbound.end_message();
}

void RdDelivery::give_back(RdPeer& peer) {
  if (ReceiveEntry* const receive = release_receive(peer)) receives_.give_back(*receive);
}

// --- Write-Records.

RdDelivery::Outcome RdDelivery::deliver_record(RdPeer& peer, const Segment& segment, Time now) {
  if (is_voided(peer, segment)) return Outcome::delivered;
  if (stag_limit_.may_name_memory_at(peer, now) > now)
    return Outcome::stag_limit;  // guard(rd-guesses)
  return record_per_segment_ ? report_segment(peer, segment, now)
                             : place_in_record(peer, segment, now);
}

/// Bytes that were reported in an earlier association have been delivered. Those after them are
/// news.
RdDelivery::Outcome RdDelivery::report_segment(RdPeer& peer, const Segment& segment, Time now) {
  const std::optional<size_t> before = peer.inbound.repeats().reported_of(segment);
  // guard(rd-delivered-once): => if (!before) return Outcome::delivered;
  if (!before) return conclude(peer, Verdict::dropped(Counter::drop_late), segment, now);
  if (!records_.has_room()) return Outcome::no_room;
  Segment fresh = segment;
  // guard(rd-record-repeated): => fresh.payload = segment.payload;
  fresh.payload = segment.payload.subspan(*before);
  fresh.message_offset += static_cast<uint32_t>(*before);
  fresh.tagged_offset += *before;
  const Verdict verdict = records_.handle(fresh, peer.source, now);
  stag_limit_.note_verdict(peer, verdict, now);
  if (!verdict.drop) peer.inbound.repeats().reported_segment(fresh);
  return conclude_record(peer, verdict, segment, now);
}

RdDelivery::Outcome RdDelivery::place_in_record(RdPeer& peer, const Segment& segment, Time now) {
  if (segment.message_offset == 0 && !records_.has_room()) return Outcome::no_room;
  const Verdict verdict = records_.handle(segment, peer.source, now);
  stag_limit_.note_verdict(peer, verdict, now);
  if (verdict.drop == Counter::drop_late) return conclude_late_record(peer, segment, now);
  return conclude_record(peer, verdict, segment, now);
}

RdDelivery::Outcome RdDelivery::conclude_record(RdPeer& peer, const Verdict& verdict,
                                                const Segment& segment, Time now) {
  peer.inbound.repeats().new_message();
  if (verdict.drop == Counter::drop_no_memory) {
    counters_.add(*verdict.drop, peer.address());
    return Outcome::no_memory;
  }
  // A segment that UD drops in silence, for it may be old, is wrong here.
  if (verdict.drop && !verdict.fault)
    return conclude(peer, {.drop = verdict.drop, .fault = fault::kUnspecified}, segment, now);
  return conclude(peer, verdict, segment, now);
}

/// A segment of a record that is closed. Repeated in a new association, it was delivered before, or
/// refused. Else its memory has gone, or it was given up, before it was complete.
RdDelivery::Outcome RdDelivery::conclude_late_record(RdPeer& peer, const Segment& segment,
                                                     Time now) {
  const Verdict late = Verdict::dropped(Counter::drop_late);
  const bool repeats = peer.inbound.repeats().may_repeat();
  const dgram::MessageName message = message_of(segment);
  if (repeats && peer.inbound.was_refused(message))
    return conclude(peer, {.drop = late.drop, .fault = peer.inbound.refusal()}, segment, now);
  // guard(rd-record-memory-gone): condition => !repeats
  if (!repeats || !peer.source.closed_records.is_accepted(segment.msn))
    return conclude(peer, {.drop = late.drop, .fault = fault::kTaggedInvalidStag}, segment, now);
  peer.inbound.ignore_rest(message);
  return conclude(peer, late, segment, now);
}

/// No other message begins while a record is open, unless its source has given it up: the
/// association in which it would have told so has ended.
void RdDelivery::close_abandoned(RdPeer& peer) {
  if (peer.source.open_records != 0) records_.close_of(peer.source);
}

// --- Sends.

RdDelivery::Outcome RdDelivery::deliver_send(RdPeer& peer, const Segment& segment, Time now) {
  if (is_voided(peer, segment)) return Outcome::delivered;
  const bool begins = segment.message_offset == 0;
  // guard(rd-delivered-once): condition => false
  if (begins && peer.inbound.repeats().repeats_send(segment.msn)) {
    peer.inbound.ignore_rest(message_of(segment));
    return conclude(peer, Verdict::dropped(Counter::drop_late), segment, now);
  }
  // A Send with Invalidate names memory, as a Write-Record does.
  if (segment.last && invalidates(segment) && stag_limit_.may_name_memory_at(peer, now) > now)
    return Outcome::stag_limit;  // guard(rd-send-invalidate-guesses)
  if (!begins && peer.inbound.has_expired(message_of(segment)))
    return conclude(peer, {.fault = fault::kStreamCatastrophic}, segment, now);
  if (begins == peer.inbound.has_message() ||
      (!begins && !continues(peer.inbound.message(), segment, q_key_)))
    return conclude(peer, {.drop = Counter::drop_contradiction, .fault = fault::kInvalidOffset},
                    segment, now);
  return begins ? begin_send(peer, segment, now) : place(peer, segment, now);
}

RdDelivery::Outcome RdDelivery::begin_send(RdPeer& peer, const Segment& segment, Time now) {
  peer.inbound.forget_expired();
  close_abandoned(peer);
  if (segment.q_key != q_key_)
    return conclude(peer, {.drop = Counter::drop_q_key, .fault = fault::kUnspecified}, segment,
                    now);
  ReceiveEntry* const receive = receives_.peek();
  if (receive == nullptr) return Outcome::no_receive;
  if (!segment.last && !peer.host.may_hold(receives_.available())) return Outcome::no_share;
  take_receive(peer, *receive, segment, now);
  return place(peer, segment, now);
}

RdDelivery::Outcome RdDelivery::place(RdPeer& peer, const Segment& segment, Time now) {
  const RdMessage& message = peer.inbound.message();
  const uint64_t offset = headroom_ + message.placed;
  const auto [fault, buffer] =
      protection_.check_untagged(message.receive->buffer(), offset, segment.payload.size());
  if (fault == ddp::BufferFault::too_long)
    return conclude(peer,
                    {.drop = Counter::drop_receive_too_small, .fault = fault::kMessageTooLong},
                    segment, now);
  if (fault == ddp::BufferFault::protection) {
    fail_receive(peer);
    return Outcome::delivered;
  }
  buffer.place(offset, segment.payload);
  peer.inbound.placed(segment.payload.size(), now);
  if (segment.last) complete(peer, segment, now);
  return Outcome::delivered;
}

void RdDelivery::complete(RdPeer& peer, const Segment& segment, Time now) {
  ReceiveEntry& receive = *release_receive(peer);
  peer.inbound.repeats().delivered_send(segment.msn);
  uint64_t bytes = peer.inbound.message().placed;
  // Before the Send invalidates anything: the receive's memory has just been checked.
  if (headers_ != nullptr) [[unlikely]]  // guard(route-header)
    bytes += headers_->write(protection_.checked_target(receive.sges()), peer.address(), 0,
                             peer.local, bytes);
  const ReceiveOutcome outcome =
      delivered_send(protection_, records_, counters_, segment, peer.address(), bytes);
  // guard(rd-send-invalidate-guesses)
  if (invalidates(segment)) stag_limit_.note(peer, outcome.invalidated, now);
  receives_.complete(receive, outcome);
}

/// The receive names memory that may not be written (any more): that is an error of this side, and
/// ends all of the queue pair's work.
void RdDelivery::fail_receive(RdPeer& peer) {
  receives_.complete(*release_receive(peer),
                     {.source = peer.address(), .status = WcStatus::local_protection_error});
  requests_.make_fatal();
}

}  // namespace diwarp::rnic
