// SPDX-License-Identifier: Apache-2.0
// How RcTransmit begins messages: which one comes next, and what its headers say.
#include <utility>

#include "rnic/queues/request_memory.h"
#include "rnic/rc/rc_transmit.h"

namespace diwarp::rnic {

namespace {

rdmap::AtomicOperation operation_of(WrOpcode opcode) {
  if (opcode == WrOpcode::fetch_add) return rdmap::AtomicOperation::fetch_add;
  return opcode == WrOpcode::swap ? rdmap::AtomicOperation::swap
                                  : rdmap::AtomicOperation::compare_swap;
}

}  // namespace

RcTransmit::Message& RcTransmit::add_message(Origin origin) {
  Message& added = message(message_count_++);
  added = {};
  added.origin = origin;
  framing_ = true;
  next_offset_ = 0;
  return added;
}

void RcTransmit::set_header(Message& message, rdmap::Opcode opcode) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(opcode);
  message.header.opcode = opcode;
  if (!info.tagged) message.header.msn = next_msn_[info.queue_number]++;
}

/// Responses and the send queue take turns.
RcTransmit::Begun RcTransmit::begin_message(Context& context, Result& result) {
  const bool respond = allowed_ && context.responder.next() != nullptr;
  if (respond && !responded_last_) return begin_response(context, result);
  const Begun begun = begin_send(context, result);
  if (begun != Begun::message && begun != Begun::failed && respond)
    return begin_response(context, result);
  if (begun == Begun::message) responded_last_ = false;
  return begun;
}

RcTransmit::Begun RcTransmit::begin_response(Context& context, Result& result) {
  const RcResponder::Request request = *context.responder.next();
  const bool answered = std::visit(
      [&](const auto& asked) { return describe_response(asked, context.responder); }, request);
  if (!answered) return fail(result, Fault::bad_response, WcStatus::success);
  context.responder.begin();
  responded_last_ = true;
  return Begun::message;
}

/// False where the memory may not be read any more.
bool RcTransmit::describe_response(const rdmap::ReadRequest& request,
                                   const RcResponder& responder) {
  const std::optional<Sge> source = responder.source(request);
  if (!source) return false;
  Message& added = add_message(Origin::response);
  set_header(added, rdmap::Opcode::read_response);
  // guard(rows:response-sink): request.sink_stag => request.source_stag
  added.header.stag = request.sink_stag;
  added.header.tagged_offset = request.sink_offset;
  added.read = request;
  added.source = *source;
  added.sges = {&added.source, 1};
  // guard(rows:response-without-header): => added.length = request.length, added.body_bytes = 4;
  added.length = request.length;
  return true;
}

bool RcTransmit::describe_response(const rdmap::AtomicRequest& request,
                                   const RcResponder& responder) {
  const std::optional<uint64_t> before = responder.perform(request);
  if (!before) return false;
  Message& added = add_message(Origin::response);
  set_header(added, rdmap::Opcode::atomic_response);
  // guard(rows:atomic-response): , *before => + 1, *before
  added.body_bytes = static_cast<uint8_t>(
      rdmap::encode_body(rdmap::AtomicResponse{request.request_id, *before}, added.body));
  return true;
}

/// The next request of the send queue; those that need nothing sent are done here.
RcTransmit::Begun RcTransmit::begin_send(Context& context, Result& result) {
  for (;;) {
    // guard(rows:post-order): next_entry_ => next_entry_ == 1 && context.sends.pending(2) !=
    //     nullptr ? 2 : next_entry_
    const SendEntry* entry = context.serves_sends ? context.sends.pending(next_entry_) : nullptr;
    if (entry == nullptr) return Begun::nothing;
    const rdmap::WrInfo& info = rdmap::info_of(entry->opcode);
    const bool fenced = has(entry->flags, SendFlags::fence) && !context.requester.idle();
    // guard(rows:fence)
    if (fenced) return Begun::nothing;  // a response lets it go on
    // What fails, and what changes memory, waits for those before it. Also for memory of
    // theirs that is in flight, whose release lets it go on: until then the connection could not
    // end with a Terminate.
    const bool alone = count_ == 0 && next_entry_ == 0;
    if (info.local) {
      if (!alone) return Begun::later;  // guard(bind-order)
      if (zero_copy_in_flight()) return Begun::nothing;
      const WcStatus status = do_local(context.protection, *entry);
      if (status != WcStatus::success) return fail(result, Fault::bad_send, status);
      context.sends.complete(status);
      continue;
    }
    if (!allowed_) return Begun::nothing;  // guard(not-ready)
    const std::optional<WcStatus> trouble = why_not(context, *entry);
    if (trouble && zero_copy_in_flight()) return Begun::nothing;
    if (trouble) return alone ? fail(result, Fault::bad_send, *trouble) : Begun::later;
    // guard(rows:ord-kept)
    if (info.responded && !context.requester.has_room()) return Begun::nothing;
    describe(*entry, context);
    ++next_entry_;
    return Begun::message;
  }
}

std::optional<WcStatus> RcTransmit::why_not(const Context& context, const SendEntry& entry) const {
  const rdmap::WrInfo& info = rdmap::info_of(entry.opcode);
  if (info.gathers && !may_send(context.protection, entry)) return WcStatus::local_protection_error;
  if (info.responded && !context.requester.sink(entry)) return WcStatus::local_protection_error;
  // The connection does not allow any.
  // guard(no-reads): condition => false
  if (info.responded && context.requester.ord() == 0) return WcStatus::local_qp_operation_error;
  return std::nullopt;
}

RcTransmit::Begun RcTransmit::fail(Result& result, Fault fault, WcStatus status) {
  result.fault = fault;
  result.status = status;
  return Begun::failed;
}

void RcTransmit::describe(const SendEntry& entry, Context& context) {
  Message& added = add_message(Origin::send_queue);
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

/// The body of a message without payload.
size_t RcTransmit::encode_request(const SendEntry& entry, Context& context, Bytes out) {
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

}  // namespace diwarp::rnic
