// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_transmit.h"

#include <new>
#include <span>
#include <utility>

#include "rnic/rc/rc_burst.h"

namespace diwarp::rnic {

namespace {

using Origin = RcMessage::Origin;

/// Memory of the oldest message may not be read: nobody can finish it.
RcTransmit::Result refusal(Origin origin) {
  using Fault = RcTransmit::Fault;
  if (origin == Origin::response) return {.fault = Fault::bad_response};
  return {.fault = Fault::bad_send, .status = WcStatus::local_protection_error};
}

/// No message was begun.
void note_fault(RcMessages::Begun begun, RcTransmit::Result& result) {
  using Outcome = RcMessages::Outcome;
  if (begun.outcome == Outcome::bad_send) result.fault = RcTransmit::Fault::bad_send;
  if (begun.outcome == Outcome::bad_response) result.fault = RcTransmit::Fault::bad_response;
  result.status = begun.status;
}

/// Read responses are not sent zero-copy. Nothing tells the application when the kernel is done
/// with memory that a peer reads, and where such memory is copied first, the copies' memory is used
/// again at once.
bool may_zero_copy(const RcMessages& messages) {
  bool all_sends = true;
  for (size_t i = 0; i < messages.size(); ++i)
    all_sends = all_sends && messages.at(i).origin != Origin::response;
  return all_sends;
}

}  // namespace

void RcTransmit::start(const mpa::NegotiatedParameters& parameters, bool initiator,
                       const StreamOptions& options) {
  encoder_.start(parameters, options.max_fpdu);
  copy_payload_ = options.copy_payload;
  forget();
  messages_.start(parameters.ready, initiator);
}

void RcTransmit::forget() {
  fpdus_.clear();
  messages_.forget();
  zero_copy_.forget();
  drop_rings();
  copies_.release();
}

bool RcTransmit::at_boundary() const {
  if (fpdus_.empty()) return !messages_.framing() || messages_.next_offset() == 0;
  return fpdus_.sent() == 0 && fpdus_.front().segment.offset == 0;
}

/// Those there are to be. False: there is no memory for any now.
bool RcTransmit::take_rings() {
  rings_used_ = true;
  const bool enough = many_ || (few_ && !wants_many_);
  if (enough) return true;
  if (!wants_many_) return use(few_);
  if (use(many_)) few_.reset();
  return few_ || many_;
}

template <size_t kEntries>
bool RcTransmit::use(std::unique_ptr<Rings<kEntries>>& rings) {
  rings.reset(new (std::nothrow) Rings<kEntries>);
  if (!rings) return false;
  fpdus_.use(rings->fpdus);
  messages_.use(rings->messages);
  return true;
}

void RcTransmit::drop_rings() {
  fpdus_.use({});
  messages_.use({});
  few_.reset();
  many_.reset();
  wants_many_ = false;
}

/// FPDUs that one burst may have.
size_t RcTransmit::max_fpdus() const {
  if (encoder_.markers()) return 1;
  return many_ ? kBurstFpdus : kFewFpdus;
}

bool RcTransmit::trim() {
  const bool framed = !messages_.empty();
  const bool copies_used = copies_.trim(framed);
  const bool rings_used = std::exchange(rings_used_, false) || framed;
  if (!rings_used) drop_rings();  // guard(rows:idle-memory)
  return copies_used || rings_used;
}

RcTransmit::Result RcTransmit::run(const Context& context, Time now) {
  if (!messages_.has_work(context)) return {};
  if (!take_rings()) {
    context.counters.add(Counter::rc_tx_no_memory);
    return {.pending = Pending::more};
  }
  messages_.add_ready();
  encoder_.refresh_segment(context.stream, now);
  seals_ = !encoder_.crc() || context.stream.send_needs_crc();
  RcBurst burst(context);
  Result result;
  const bool all_gathered = gather(burst);
  const bool stopped = all_gathered && frame(burst, result);
  if (burst.bytes() == 0 && burst.refused())
    return zero_copy_.in_flight() ? result : refusal(burst.refused()->origin);
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

llp::IoResult RcTransmit::give(const Context& context, const RcBurst& burst) {
  if (!context.zero_copy || !may_zero_copy(messages_)) return context.stream.send(burst.pieces());
  const llp::IoResult sent = context.stream.send_zero_copy(burst.pieces());
  zero_copy_.count_calls(context.stream);
  return sent;
}

/// Puts what is framed already into the burst. False if it does not hold all of it.
bool RcTransmit::gather(RcBurst& burst) {
  size_t of = 0;
  for (size_t index = 0; index < fpdus_.size(); ++index) {
    const RcMessage& message = messages_.at(of);
    if (!burst.admit(message)) return false;
    if (!add_framed(burst, index, message)) return false;
    if (fpdus_.at(index).segment.last) ++of;
  }
  return true;
}

/// One that was framed for memory of the host needs its CRC where it goes over the network now,
/// unless the stream has its beginning. Its payload is not copied, so memory that changes before it
/// is sent ends the connection. The stream changes its way in the midst of a burst only where the
/// peer's device is gone.
bool RcTransmit::add_framed(RcBurst& burst, size_t index, const RcMessage& message) {
  RcFpdu& fpdu = fpdus_.at(index);
  const size_t skip = index == 0 ? fpdus_.sent() : 0;
  if (encoder_.markers()) return burst.add_bytes(copies_.marked().first(fpdu.whole).subspan(skip));
  std::span<const ConstBytes> payload;
  if (!burst.add(fpdu, skip, message, payload)) return false;
  if (seals_ && !fpdu.sealed && skip == 0) encoder_.seal(fpdu, payload);
  return true;
}

/// Frames what there is. True if it stopped before the end for a reason that passes by itself.
bool RcTransmit::frame(RcBurst& burst, Result& result) {
  const size_t most = burst.context().burst_bytes;
  while (fpdus_.size() < max_fpdus() && fpdus_.waiting_bytes() < most) {
    if (!messages_.framing()) {
      const RcMessages::Begun begun =
          messages_.begin(burst.context(), {!fpdus_.empty(), zero_copy_.in_flight()});
      if (begun.outcome != RcMessages::Outcome::message) {
        note_fault(begun, result);
        return begun.outcome == RcMessages::Outcome::later;
      }
      burst.admit_begun(messages_.back());
    }
    if (!burst.admit(messages_.back())) return true;
    const RcFramed framed = frame_next(burst);
    if (framed == RcFramed::no_memory) result.pending = Pending::more;  // guard(rc-allocation)
    if (framed != RcFramed::fpdu) return true;
  }
  if (few_ && fpdus_.size() == kFewFpdus) wants_many_ = true;
  return true;
}

RcFramed RcTransmit::frame_next(RcBurst& burst) {
  const RcMessage& message = messages_.back();
  RcFpdu& fpdu = fpdus_.next();
  // guard(rows:segments-without-gaps): messages_.next_offset() => messages_.next_offset() / 2
  encoder_.cut(message, messages_.next_offset(), fpdu);
  if (const RcFramed staged = stage(fpdu, message, burst.context()); staged != RcFramed::fpdu)
    return staged;
  const bool markers = encoder_.markers();
  if (markers &&
      !copies_.reserve_marked(mpa::marked_fpdu_bytes(fpdu.ulpdu_bytes()), burst.context().counters))
    return RcFramed::no_memory;
  std::span<const ConstBytes> payload;
  if (!burst.add(fpdu, 0, message, payload)) return RcFramed::no_room;
  if (markers) {
    encoder_.encode_marked(fpdu, message, payload, copies_.marked());
    burst.clear();
    burst.add_bytes(copies_.marked().first(fpdu.whole));
  } else {
    encoder_.encode(fpdu, message, payload, seals_);
  }
  messages_.framed(fpdu.segment);
  fpdus_.push();
  return RcFramed::fpdu;
}

/// Whether the payload is of memory that may change before it is sent.
bool RcTransmit::needs_copy(const RcFpdu& fpdu, const RcMessage& message) const {
  if (!encoder_.crc() || !seals_ || fpdu.segment.length == 0) return false;
  if (message.origin == Origin::response) return true;
  const SendEntry* const entry = message.entry;
  // Inline data are a copy already.
  return copy_payload_ && entry != nullptr && !has(entry->flags, SendFlags::inline_data);
}

/// Copies what is sent of memory that may change.
RcFramed RcTransmit::stage(RcFpdu& fpdu, const RcMessage& message, const Context& context) {
  fpdu.staged = nullptr;
  // Also before what is not copied: the memory may be gone.
  if (fpdus_.empty()) copies_.clear_staged();
  // guard(response-copied): condition => true
  if (!needs_copy(fpdu, message)) return RcFramed::fpdu;
  return copies_.stage(fpdu, message.payload(), context.burst_bytes, context.counters);
}

/// Books what the stream took. Returns how many FPDUs are done.
size_t RcTransmit::advance(const Context& context, size_t bytes) {
  context.counters.add(Counter::rc_tx_bytes, bytes);
  size_t done = 0;
  while (bytes != 0 && fpdus_.take_sent(bytes)) {
    if (fpdus_.front().segment.last) finish_message(context);
    fpdus_.pop();
    ++done;
  }
  context.counters.add(Counter::rc_tx_fpdus, done);
  return done;
}

/// The oldest message is on the stream.
void RcTransmit::finish_message(const Context& context) {
  switch (messages_.at(0).origin) {
    case Origin::ready:
      break;
    case Origin::response:
      context.responder.finish();
      break;
    case Origin::send_queue:
      zero_copy_.sent(context.sends);
      break;
  }
  messages_.pop();
}

std::vector<std::byte> RcTransmit::final_bytes(const Context& context, ConstBytes terminate) const {
  std::vector<std::byte> bytes;
  uint64_t position = encoder_.position() - fpdus_.waiting_bytes();
  if (fpdus_.sent() != 0) {
    const RcFpdu& begun = fpdus_.front();
    RcBurst burst(context);
    std::span<const ConstBytes> payload;
    if (!burst.admit(messages_.at(0))) return {};
    if (encoder_.markers())
      burst.add_bytes(copies_.marked().first(begun.whole).subspan(fpdus_.sent()));
    else
      burst.add(begun, fpdus_.sent(), messages_.at(0), payload);
    for (ConstBytes piece : burst.pieces()) bytes.insert(bytes.end(), piece.begin(), piece.end());
    position += begun.whole;
  }
  // guard(rows:terminate-last): encoder_.append_last => encoder_.append_last(bytes, terminate,
  //     position), encoder_.append_last
  encoder_.append_last(bytes, terminate, position);
  return bytes;
}

}  // namespace diwarp::rnic
