// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_transmit.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/crc32c.h"
#include "rnic/rc/rc_transmit_burst.h"

namespace diwarp::rnic {

void RcTransmit::start(const mpa::NegotiatedParameters& parameters, bool initiator,
                       uint32_t max_fpdu) {
  allowed_ = initiator;  // guard(rows:responder-waits): initiator => true
  crc_ = parameters.crc;
  // guard(rows:markers-if-asked): parameters.send_markers => false
  send_markers_ = parameters.send_markers;
  max_fpdu_ = max_fpdu;
  mulpdu_ = 0;
  position_ = 0;
  responded_last_ = false;
  next_msn_ = {1, 1, 1, 1};  // guard(rows:msn-sent): 1, 1, 1, 1 => 0, 0, 0, 0
  forget();
  // guard(rows:ready-sent): without initiator ? parameters.ready :
  ready_ = initiator ? parameters.ready : ReadyToReceive::none;
}

void RcTransmit::forget() {
  first_ = count_ = waiting_bytes_ = sent_ = 0;
  first_message_ = message_count_ = 0;
  framing_ = false;
  next_entry_ = next_offset_ = 0;
  zero_copy_.forget();
  ready_ = ReadyToReceive::none;
  rings_.reset();
  staging_.release();
  marked_.release();
}

/// RFC 6581 section 4: of no length; what it names does not matter.
void RcTransmit::add_ready_message(ReadyToReceive kind) {
  if (kind == ReadyToReceive::none) return;
  Message& message = add_message(Origin::ready);
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

bool RcTransmit::at_boundary() const {
  if (count_ == 0) return !framing_ || next_offset_ == 0;
  return sent_ == 0 && framed(0).segment.offset == 0;
}

bool RcTransmit::has_work(const Context& context) const {
  return message_count_ != 0 || ready_ != ReadyToReceive::none ||
         (allowed_ && context.responder.next() != nullptr) ||
         (context.serves_sends && context.sends.pending() != nullptr);
}

/// Where there are none yet. False: there is no memory for them now.
bool RcTransmit::take_rings() {
  rings_used_ = true;
  if (!rings_) rings_.reset(new (std::nothrow) Rings);
  return rings_ != nullptr;
}

RcTransmit::Result RcTransmit::run(Context context, Time now) {
  if (!has_work(context)) return {};
  if (!take_rings()) {
    context.counters.add(Counter::rc_tx_no_memory);
    return {.pending = Pending::more};
  }
  add_ready_message(std::exchange(ready_, ReadyToReceive::none));
  refresh_segment(context.stream, now);
  Burst burst(context);
  Result result;
  const bool all_gathered = gather(burst);
  const bool stopped = all_gathered && frame(burst, result);
  if (burst.bytes() == 0 && burst.refused())
    return zero_copy_in_flight() ? result : refusal(burst.refused()->origin);
  if (result.fault != Fault::none) return result;
  if (burst.bytes() == 0) return result;
  const llp::IoResult sent = give(context, burst);
  if (sent.status == llp::IoStatus::failed)
    return {.fault = Fault::stream_failed, .error = sent.error};
  result.fpdus = advance(context, sent.bytes);
  if (sent.bytes < burst.bytes()) {
    context.counters.add(Counter::tx_would_block);  // guard(full-stream)
    result.pending = Pending::writable;
  } else if (!all_gathered || stopped) {
    result.pending = Pending::more;
  }
  return result;
}

llp::IoResult RcTransmit::give(Context& context, const Burst& burst) {
  if (!context.zero_copy || !may_zero_copy()) return context.stream.send(burst.pieces());
  const llp::IoResult sent = context.stream.send_zero_copy(burst.pieces());
  zero_copy_.count_calls(context.stream);
  return sent;
}

/// Not what peers read: nobody waits for the end of that before the memory is used otherwise, and
/// copies of it lie in memory that is used again.
bool RcTransmit::may_zero_copy() const {
  bool all_sends = true;
  for (size_t i = 0; i < message_count_; ++i)
    all_sends = all_sends && message(i).origin != Origin::response;
  return all_sends;
}

/// Memory of the oldest message may not be read: nobody can finish it.
RcTransmit::Result RcTransmit::refusal(Origin origin) {
  if (origin == Origin::response) return {.fault = Fault::bad_response};
  return {.fault = Fault::bad_send, .status = WcStatus::local_protection_error};
}

void RcTransmit::refresh_segment(const llp::Stream& stream, Time now) {
  // guard(rows:emss-followed): condition => mulpdu_ != 0
  if (mulpdu_ != 0 && now - measured_ < kSegmentRefresh) return;
  // guard(rows:max-fpdu): without max_fpdu_ != 0 ? max_fpdu_ :
  const size_t fpdu = max_fpdu_ != 0 ? max_fpdu_ : stream.maximum_segment();
  mulpdu_ = send_markers_ ? mpa::mulpdu_with_markers(fpdu) : mpa::mulpdu(fpdu);
  measured_ = now;
}

/// Puts what is framed already into the burst. False if it does not hold all of it.
bool RcTransmit::gather(Burst& burst) const {
  size_t of = 0;
  size_t skip = sent_;
  for (size_t index = 0; index < count_; ++index, skip = 0) {
    const Fpdu& fpdu = framed(index);
    if (!burst.admit(message(of))) return false;
    std::span<const ConstBytes> payload;
    const bool added = send_markers_ ? burst.add_bytes(marked().subspan(skip))
                                     : burst.add(fpdu, skip, message(of), payload);
    if (!added) return false;
    if (fpdu.segment.last) ++of;
  }
  return true;
}

/// Frames what there is. True if it stopped before the end for a reason that passes by itself.
bool RcTransmit::frame(Burst& burst, Result& result) {
  const size_t most = burst.context().burst_bytes;
  while (count_ < (send_markers_ ? 1 : kBurstFpdus) && waiting_bytes_ < most) {
    if (!framing_) {
      const Begun begun = begin_message(burst.context(), result);
      if (begun != Begun::message) return begun == Begun::later;
    }
    if (!burst.admit(last_message())) return true;
    const Framed framed = frame_next(burst);
    if (framed == Framed::no_memory) result.pending = Pending::more;  // guard(rc-allocation)
    if (framed != Framed::fpdu) return true;
  }
  return true;
}

RcTransmit::Framed RcTransmit::frame_next(Burst& burst) {
  Message& message = last_message();
  Fpdu& fpdu = framed(count_);
  const size_t header = ddp::header_bytes(rdmap::info_of(message.header.opcode).tagged);
  const size_t most = ddp::max_payload(mulpdu_, header);
  // guard(rows:segments-without-gaps): next_offset_ => next_offset_ / 2
  fpdu.segment = ddp::next_segment(message.length, next_offset_, most);
  fpdu.head_bytes = static_cast<uint8_t>(mpa::kLengthBytes + header + message.body_bytes);
  const size_t ulpdu = header + message.body_bytes + fpdu.segment.length;
  fpdu.trailer_bytes = static_cast<uint8_t>(mpa::pad_bytes(ulpdu) + mpa::kCrcBytes);
  fpdu.whole = static_cast<uint32_t>(mpa::fpdu_bytes(ulpdu));
  std::span<const ConstBytes> payload;
  if (const Framed staged = stage(fpdu, message, burst.context()); staged != Framed::fpdu)
    return staged;
  if (send_markers_ && !take(burst.context(), marked_, mpa::marked_fpdu_bytes(ulpdu)))
    return Framed::no_memory;
  if (!burst.add(fpdu, 0, message, payload)) return Framed::no_room;
  encode_head(fpdu, message);
  if (send_markers_) {
    encode_marked(fpdu, payload);
    burst.clear();
    burst.add_bytes(marked());
  } else {
    encode_trailer(fpdu, payload);
  }
  ++count_;
  waiting_bytes_ += fpdu.whole;
  position_ += fpdu.whole;
  next_offset_ += fpdu.segment.length;
  // guard(rows:empty-message-sent): !fpdu.segment.last => !fpdu.segment.last || message.length == 0
  framing_ = !fpdu.segment.last;
  return Framed::fpdu;
}

/// Memory for copies of `bytes`. False, and counted: there is none now.
bool RcTransmit::take(Context& context, Scratch& copies, size_t bytes) {
  copies_used_ = true;
  if (copies.reserve(bytes)) return true;
  context.counters.add(Counter::rc_tx_no_memory);
  return false;
}

/// Copies what is sent of memory that may change. Where there is no memory for a whole burst's, it
/// is one of this FPDU.
RcTransmit::Framed RcTransmit::stage(Fpdu& fpdu, const Message& message, Context& context) {
  fpdu.staged = nullptr;
  if (count_ == 0) staged_ = 0;  // also before what is not copied: the memory may be gone
  // guard(response-copied): condition => true
  if (message.origin != Origin::response || !crc_ || fpdu.segment.length == 0) return Framed::fpdu;
  // A burst, and the FPDU that reaches beyond it.
  const size_t wanted = std::min(context.burst_bytes, kStagedBurstBytes) + mpa::kMaxUlpdu;
  const uint32_t length = fpdu.segment.length;
  if (staged_ == 0 && !take(context, staging_, wanted) && !staging_.reserve(length))
    return Framed::no_memory;
  const Bytes room = staging_.bytes().subspan(staged_);
  if (length > room.size()) return Framed::no_room;
  const auto* source = static_cast<const std::byte*>(message.source.address) + fpdu.segment.offset;
  std::copy_n(source, length, room.begin());
  fpdu.staged = room.data();
  staged_ += length;
  return Framed::fpdu;
}

bool RcTransmit::trim() {
  const bool framed = message_count_ != 0;
  const bool copies_used = std::exchange(copies_used_, false) || framed;
  const bool rings_used = std::exchange(rings_used_, false) || framed;
  if (!copies_used) staging_.release(), marked_.release();
  if (!rings_used) rings_.reset();  // guard(rows:idle-memory)
  return copies_used || rings_used;
}

void RcTransmit::encode_head(Fpdu& fpdu, const Message& message) const {
  rdmap::StreamSegment segment = message.header;
  fpdu.segment.set_place(segment, segment.tagged_offset);
  const size_t ulpdu = fpdu.head_bytes - mpa::kLengthBytes + fpdu.segment.length;
  mpa::encode_length(ulpdu, fpdu.head);
  const Bytes behind = Bytes(fpdu.head).subspan(mpa::kLengthBytes);
  const size_t header = rdmap::encode_header(segment, behind);
  std::copy_n(message.body.begin(), message.body_bytes, behind.subspan(header).begin());
}

void RcTransmit::encode_trailer(Fpdu& fpdu, std::span<const ConstBytes> payload) const {
  Crc32c crc;
  if (crc_) {
    crc.update(fpdu.head_view());
    for (ConstBytes piece : payload) crc.update(piece);
  }
  const size_t ulpdu = fpdu.head_bytes - mpa::kLengthBytes + fpdu.segment.length;
  mpa::encode_trailer(ulpdu, crc_ ? &crc : nullptr, fpdu.trailer);
}

/// With markers an FPDU is not gathered but copied: they stand between any two bytes of it.
void RcTransmit::encode_marked(Fpdu& fpdu, std::span<const ConstBytes> payload) {
  std::array<ConstBytes, kMaxSge + 1> ulpdu;
  ulpdu[0] = fpdu.head_view().subspan(mpa::kLengthBytes);
  std::ranges::copy(payload, ulpdu.begin() + 1);
  fpdu.whole = static_cast<uint32_t>(mpa::encode_marked_fpdu(
      std::span(ulpdu).first(1 + payload.size()), position_, crc_, marked_.bytes()));
}

/// Books what the stream took. Returns how many FPDUs are done.
size_t RcTransmit::advance(Context& context, size_t bytes) {
  context.counters.add(Counter::rc_tx_bytes, bytes);
  size_t done = 0;
  while (bytes != 0) {
    const Fpdu& fpdu = framed(0);
    const size_t taken = std::min(bytes, fpdu.whole - sent_);
    bytes -= taken;
    sent_ += taken;
    if (sent_ < fpdu.whole) break;
    sent_ = 0;
    waiting_bytes_ -= fpdu.whole;
    if (fpdu.segment.last) finish_message(context);
    first_ = (first_ + 1) % kBurstFpdus;
    --count_;
    ++done;
  }
  context.counters.add(Counter::rc_tx_fpdus, done);
  return done;
}

/// The oldest message is on the stream.
void RcTransmit::finish_message(Context& context) {
  switch (message(0).origin) {
    case Origin::ready:
      break;
    case Origin::response:
      context.responder.finish();
      break;
    case Origin::send_queue:
      zero_copy_.sent(context.sends);
      --next_entry_;
      break;
  }
  first_message_ = (first_message_ + 1) % kBurstFpdus;
  --message_count_;
}

std::vector<std::byte> RcTransmit::final_bytes(Context context, ConstBytes terminate) const {
  std::vector<std::byte> bytes;
  uint64_t position = position_ - waiting_bytes_;
  if (sent_ != 0) {
    Burst burst(context);
    std::span<const ConstBytes> payload;
    if (!burst.admit(message(0))) return {};
    if (send_markers_)
      burst.add_bytes(marked().subspan(sent_));
    else
      burst.add(framed(0), sent_, message(0), payload);
    for (ConstBytes piece : burst.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
    position += framed(0).whole;
  }
  // guard(rows:terminate-last): append_fpdu => append_fpdu(bytes, terminate, position), append_fpdu
  append_fpdu(bytes, terminate, position);
  return bytes;
}

void RcTransmit::append_fpdu(std::vector<std::byte>& bytes, ConstBytes ulpdu,
                             uint64_t position) const {
  const size_t before = bytes.size();
  if (send_markers_) {
    bytes.resize(before + mpa::marked_fpdu_bytes(ulpdu.size()));
    bytes.resize(before + mpa::encode_marked_fpdu({&ulpdu, 1}, position, crc_,
                                                  Bytes(bytes).subspan(before)));
    return;
  }
  bytes.resize(before + mpa::fpdu_bytes(ulpdu.size()));
  const Bytes out = Bytes(bytes).subspan(before);
  mpa::encode_length(ulpdu.size(), out);
  std::copy(ulpdu.begin(), ulpdu.end(), out.subspan(mpa::kLengthBytes).begin());
  const size_t covered = mpa::kLengthBytes + ulpdu.size();
  Crc32c crc;
  crc.update(out.first(covered));
  mpa::encode_trailer(ulpdu.size(), crc_ ? &crc : nullptr, out.subspan(covered));
}

}  // namespace diwarp::rnic
