// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_messages.h"

#include <optional>
#include <utility>
#include <variant>

#include "rnic/queues/local_operation.h"

namespace diwarp::rnic {

namespace {

using Origin = RcMessage::Origin;

rdmap::AtomicOperation operation_of(WrOpcode opcode) {
  if (opcode == WrOpcode::fetch_add) return rdmap::AtomicOperation::fetch_add;
  return opcode == WrOpcode::swap ? rdmap::AtomicOperation::swap
                                  : rdmap::AtomicOperation::compare_swap;
}

std::optional<WcStatus> why_not(const RcTransmitContext& context, const SendEntry& entry) {
  const rdmap::WrInfo& info = rdmap::info_of(entry.opcode);
  if (info.gathers && !may_send(context.protection, entry)) return WcStatus::local_protection_error;
  if (info.responded && !context.requester.sink(entry)) return WcStatus::local_protection_error;
  // The connection does not allow any.
  // guard(no-reads): condition => false
  if (info.responded && context.requester.ord() == 0) return WcStatus::local_qp_operation_error;
  return std::nullopt;
}

/// The body of a message without payload.
size_t encode_request(const SendEntry& entry, const RcTransmitContext& context, Bytes out) {
  if (rdmap::info_of(entry.opcode).takes(rdmap::Operands::immediate))
    return rdmap::encode_immediate(*entry.immediate(), out);
  const RemoteMemory sink = *context.requester.sink(entry);
  const uint32_t id = context.requester.begin();
  if (rdmap::is_read(entry.opcode))
    return rdmap::encode_body(rdmap::ReadRequest{.sink_stag = sink.stag,
                                                 .sink_offset = sink.offset,
                                                 .length = static_cast<uint32_t>(entry.length),
                                                 .source_stag = entry.remote.stag,
                                                 .source_offset = entry.remote.offset},
                              out);
  rdmap::AtomicRequest request = rdmap::make_atomic_request(
      operation_of(entry.opcode), std::get<AtomicOperands>(entry.operands));
  request.request_id = id;
  request.stag = entry.remote.stag;
  request.offset = entry.remote.offset;
  return rdmap::encode_body(request, out);
}

}  // namespace

void RcMessages::start(ReadyToReceive ready, bool initiator) {
  allowed_ = initiator;  // guard(rows:responder-waits): initiator => true
  responded_last_ = false;
  next_msn_ = {1, 1, 1, 1};  // guard(rows:msn-sent): 1, 1, 1, 1 => 0, 0, 0, 0
  forget();
  // guard(rows:ready-sent): without initiator ? ready :
  ready_ = initiator ? ready : ReadyToReceive::none;
}

void RcMessages::forget() {
  ring_.clear();
  framing_ = false;
  next_entry_ = next_offset_ = 0;
  ready_ = ReadyToReceive::none;
}

bool RcMessages::has_work(const RcTransmitContext& context) const {
  return !ring_.empty() || ready_ != ReadyToReceive::none ||
         (allowed_ && context.responder.next() != nullptr) ||
         (context.serves_sends && context.sends.pending() != nullptr);
}

/// RFC 6581 section 4: of no length, with any STag and offset.
void RcMessages::add_ready() {
  const ReadyToReceive kind = std::exchange(ready_, ReadyToReceive::none);
  if (kind == ReadyToReceive::none) return;
  RcMessage& message = add(Origin::ready);
  switch (kind) {
    case ReadyToReceive::none:
      break;
    case ReadyToReceive::send:
      set_header(message, rdmap::Opcode::send);
      break;
    case ReadyToReceive::write:
      set_header(message, rdmap::Opcode::rdma_write);
      message.header.stag = kReadyStag;
      break;
    case ReadyToReceive::read:
      set_header(message, rdmap::Opcode::read_request);
      // guard(rows:ready-sent-empty): .source_stag => .length = 1,.source_stag
      message.body_bytes = static_cast<uint8_t>(rdmap::encode_body(
          rdmap::ReadRequest{.sink_stag = kReadyStag, .source_stag = kReadyStag}, message.body));
      break;
  }
}

RcMessage& RcMessages::add(Origin origin) {
  RcMessage& added = ring_.next();
  ring_.push();
  added.begin(origin);
  framing_ = true;
  next_offset_ = 0;
  return added;
}

void RcMessages::set_header(RcMessage& message, rdmap::Opcode opcode) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(opcode);
  message.header.opcode = opcode;
  if (!info.tagged) message.header.msn = next_msn_[info.queue_number]++;
}

/// Responses and the send queue take turns.
RcMessages::Begun RcMessages::begin(const RcTransmitContext& context, Outstanding outstanding) {
  const bool respond = allowed_ && context.responder.next() != nullptr;
  if (respond && !responded_last_) return begin_response(context);
  const Begun begun = begin_send(context, outstanding);
  if (begun.outcome != Outcome::message && begun.outcome != Outcome::bad_send && respond)
    return begin_response(context);
  if (begun.outcome == Outcome::message) responded_last_ = false;
  return begun;
}

RcMessages::Begun RcMessages::begin_response(const RcTransmitContext& context) {
  const RcResponder::Request request = *context.responder.next();
  const bool answered = std::visit(
      [&](const auto& asked) { return describe_response(asked, context.responder); }, request);
  if (!answered) return {Outcome::bad_response};
  context.responder.begin();
  responded_last_ = true;
  return {Outcome::message};
}

/// False where the memory may not be read any more.
bool RcMessages::describe_response(const rdmap::ReadRequest& request,
                                   const RcResponder& responder) {
  const std::optional<Sge> source = responder.source(request);
  if (!source) return false;
  RcMessage& added = add(Origin::response);
  set_header(added, rdmap::Opcode::read_response);
  // guard(rows:response-sink): request.sink_stag => request.source_stag
  added.header.stag = request.sink_stag;
  added.header.tagged_offset = request.sink_offset;
  added.read = request;
  added.source = *source;
  // guard(rows:response-without-header): => added.length = request.length, added.body_bytes = 4;
  added.length = request.length;
  return true;
}

bool RcMessages::describe_response(const rdmap::AtomicRequest& request,
                                   const RcResponder& responder) {
  const std::optional<uint64_t> before = responder.perform(request);
  if (!before) return false;
  RcMessage& added = add(Origin::response);
  set_header(added, rdmap::Opcode::atomic_response);
  // guard(rows:atomic-response): , *before => + 1, *before
  added.body_bytes = static_cast<uint8_t>(
      rdmap::encode_body(rdmap::AtomicResponse{request.request_id, *before}, added.body));
  return true;
}

/// The next request of the send queue; those that need nothing sent are done here.
RcMessages::Begun RcMessages::begin_send(const RcTransmitContext& context,
                                         Outstanding outstanding) {
  for (;;) {
    // guard(rows:post-order): next_entry_ => next_entry_ == 1 && context.sends.pending(2) !=
    //     nullptr ? 2 : next_entry_
    const SendEntry* entry = context.serves_sends ? context.sends.pending(next_entry_) : nullptr;
    if (entry == nullptr) return {Outcome::nothing};
    const rdmap::WrInfo& info = rdmap::info_of(entry->opcode);
    const bool fenced = has(entry->flags, SendFlags::fence) && !context.requester.idle();
    // guard(rows:fence)
    if (fenced) return {Outcome::nothing};  // a response lets it go on
    // A request that fails, or that changes memory, waits for those before it. It also waits until
    // their memory in flight is released: before that the connection could not end with a
    // Terminate.
    const bool alone = !outstanding.framed && next_entry_ == 0;
    if (info.local) {
      if (!alone) return {Outcome::later};  // guard(bind-order)
      if (outstanding.zero_copy) return {Outcome::nothing};
      const WcStatus status = do_local(context.protection, *entry);
      if (status != WcStatus::success) return {Outcome::bad_send, status};
      context.sends.complete(status);
      continue;
    }
    if (!allowed_) return {Outcome::nothing};  // guard(not-ready)
    const std::optional<WcStatus> trouble = why_not(context, *entry);
    if (trouble && outstanding.zero_copy) return {Outcome::nothing};
    if (trouble) return alone ? Begun{Outcome::bad_send, *trouble} : Begun{Outcome::later};
    // guard(rows:ord-kept)
    if (info.responded && !context.requester.has_room()) return {Outcome::nothing};
    describe(*entry, context);
    ++next_entry_;
    return {Outcome::message};
  }
}

void RcMessages::describe(const SendEntry& entry, const RcTransmitContext& context) {
  RcMessage& added = add(Origin::send_queue);
  set_header(added, opcode_of(entry));
  added.header.invalidate_stag = entry.invalidate_stag;
  if (rdmap::info_of(entry.opcode).gathers) {
    added.header.stag = entry.remote.stag;
    added.header.tagged_offset = entry.remote.offset;
    added.entry = &entry;
    added.sges = entry.sges;
    // guard(rows:write-without-header): => added.length = entry.length, added.body_bytes = 4;
    added.length = entry.length;
  } else {
    added.body_bytes = static_cast<uint8_t>(encode_request(entry, context, added.body));
  }
}

}  // namespace diwarp::rnic
