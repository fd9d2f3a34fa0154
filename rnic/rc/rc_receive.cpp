// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_receive.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <new>
#include <optional>
#include <span>

#include "rdmap/terminate.h"
#include "rnic/engine/engine_buffers.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

/// One read leaves room in the engine's buffer to complete the FPDU that it cuts.
constexpr size_t kReadMost = kStreamBufferBytes - PartialFpduBuffer::kWholeFpdu;

/// The bytes of the next FPDU that tell how to go on.
constexpr size_t kHeaderBytes = mpa::kLengthBytes + ddp::kUntaggedHeaderBytes;

}  // namespace

void RcReceive::start(const mpa::NegotiatedParameters& parameters, bool initiator,
                      ConstBytes leftover) {
  deframer_ = mpa::Deframer(parameters.crc, parameters.receive_markers);
  segments_.start(initiator ? ReadyToReceive::none : parameters.ready);
  heard_ = initiator;
  direct_placement_.end();
  expects_long_ = 0;
  counters_.add(Counter::rc_rx_bytes, leftover.size());
  within_memory([&] {
    partial_fpdus_.assign(leftover);  // guard(rows:leftover-first): leftover => {}
    return termination().reason();
  });
}

/// Input may take memory: for unfinished FPDUs, and for the peer's requests. Where there is
/// none the connection ends, for nothing of a stream can be left out.
template <class Work>
RcEnd RcReceive::within_memory(Work&& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    counters_.add(Counter::drop_no_memory);
    segments_.termination().end(RcEnd::no_memory, fault::kLocalCatastrophic, {});
    return termination().reason();
  }
}

RcEnd RcReceive::read(llp::Stream& stream, Bytes buffer) {
  delivery().check_again();
  came_ = 0;
  const bool long_is_cut = !partial_fpdus_.empty() && needed_ >= kLongFpdu;
  return within_memory([&] {
    if (direct_placement_.under_way()) return read_direct(stream, buffer);
    return long_is_cut ? read_cut(stream, buffer) : read_ahead(stream, buffer);
  });
}

/// The rest of a long FPDU comes where its beginning is, and what follows into the buffer.
RcEnd RcReceive::read_cut(llp::Stream& stream, Bytes buffer) {
  assert(needed_ > partial_fpdus_.size());
  const size_t rest = needed_ - partial_fpdus_.size();
  const size_t behind = deframer_.allows_partial() ? kHeaderBytes : kReadMost;
  const std::array<Bytes, 2> room{partial_fpdus_.room(rest), buffer.first(behind)};
  if (!book(stream.receive_into(room))) return conclude();
  deframer_.came(stream.received_needs_crc(), true);
  partial_fpdus_.add(std::min(came_, rest));
  partial_fpdus_.drop(consume(partial_fpdus_.bytes()));
  if (came_ <= rest) {
    if (begin_direct(partial_fpdus_.bytes())) partial_fpdus_.assign({});
    return conclude();
  }
  if (partial_fpdus_.empty()) return take_read(stream, buffer, came_ - rest);
  assert(delivery().held() || termination().ended());
  partial_fpdus_.append(buffer.first(came_ - rest));
  return conclude();
}

RcEnd RcReceive::read_ahead(llp::Stream& stream, Bytes buffer) {
  const ConstBytes front = partial_fpdus_.bytes();
  assert(front.size() < kLongFpdu);
  const size_t wanted = expects_long_ != 0 ? kReadBeforeLong : kReadMost - front.size();
  if (!book(stream.receive(buffer.subspan(front.size(), wanted)))) return conclude();
  deframer_.came(stream.received_needs_crc(), !front.empty());
  std::copy(front.begin(), front.end(), buffer.begin());
  return take_read(stream, buffer, front.size() + came_);
}

/// Takes what fills the front of the buffer, and of the FPDU that it cuts the rest, if that is
/// there.
RcEnd RcReceive::take_read(llp::Stream& stream, Bytes buffer, size_t filled) {
  size_t taken = consume(buffer.first(filled));
  const bool cut = !termination().ended() && !delivery().held() && taken != filled;
  const size_t before = came_;
  if (cut && begin_direct(buffer.subspan(taken, filled - taken)))
    taken = filled;
  else if (cut && book(stream.receive(buffer.subspan(filled, needed_ - (filled - taken))))) {
    filled += came_ - before;
    taken += consume(buffer.first(filled).subspan(taken));
  }
  partial_fpdus_.assign(buffer.subspan(taken, filled - taken));
  return conclude();
}

RcEnd RcReceive::give_up_waiting() {
  delivery().stop_holding();
  return resume();
}

RcEnd RcReceive::resume() {
  delivery().resume();
  if (termination().ended()) return termination().reason();
  return within_memory([this] {
    partial_fpdus_.drop(consume(partial_fpdus_.bytes()));
    return termination().reason();
  });
}

/// An end of the stream is in order only between two messages.
RcEnd RcReceive::conclude() {
  // guard(rc): without && segments_.at_boundary()
  // guard(rc): without partial_fpdus_.empty() &&
  // guard(direct-placement): without !direct_placement_.under_way() &&
  const bool between_messages =
      partial_fpdus_.empty() && !direct_placement_.under_way() && segments_.at_boundary();
  // guard(rows:end-inside-message)
  if (termination().reason() == RcEnd::closed && !between_messages)
    segments_.termination().stream_ended(RcEnd::lost);
  return termination().reason();
}

/// True if bytes came.
bool RcReceive::book(const llp::IoResult& result) {
  RcTermination& termination = segments_.termination();
  if (result.status == llp::IoStatus::closed) termination.stream_ended(RcEnd::closed);
  if (result.status == llp::IoStatus::failed) termination.stream_ended(end_of_stream(result.error));
  if (result.status != llp::IoStatus::ok) return false;
  came_ += result.bytes;
  counters_.add(Counter::rc_rx_bytes, result.bytes);
  return true;
}

/// Takes whole FPDUs from the front while it may. Returns how many bytes they had.
size_t RcReceive::consume(ConstBytes bytes) {
  RcTermination& termination = segments_.termination();
  size_t done = 0;
  for (;;) {
    const mpa::Deframed framed = deframer_.next(bytes.subspan(done));
    needed_ = framed.needed;
    // guard(rc)
    // guard(rows:crc-error-code): fault::kBadCrc => fault::kUnspecified
    // guard(rows:nothing-after-error): termination.end(RcEnd::bad_crc, fault::kBadCrc, {}); => {
    //     termination.end(RcEnd::bad_crc, fault::kBadCrc, {}); done +=
    //     mpa::fpdu_bytes(std::to_integer<size_t>(bytes[done + 1])); continue; }
    if (framed.status == mpa::DeframeStatus::bad_crc)
      termination.end(RcEnd::bad_crc, fault::kBadCrc, {});
    // guard(rows:marker-error-code): fault::kBadMarker => fault::kUnspecified
    if (framed.status == mpa::DeframeStatus::bad_marker)
      termination.end(RcEnd::protocol_error, fault::kBadMarker, {});  // guard(marker-pointer)
    if (framed.status != mpa::DeframeStatus::fpdu) return done;
    heard_ = true;
    // guard(rows:nothing-after-error): => segments_.take(framed.ulpdu);
    if (!segments_.take(framed.ulpdu)) return done;
    deframer_.step(framed.consumed);
    if (expects_long_ != 0) --expects_long_;
    if (framed.consumed >= kLongFpdu && deframer_.allows_partial()) expects_long_ = kExpectLong;
    done += framed.consumed;
    counters_.add(Counter::rc_rx_fpdus);
  }
}

// --- Direct placement.

/// Takes what is there of an FPDU at the front, if it is a long one that is in order in all
/// respects. Any other is left until it is whole: then it is checked as all are.
bool RcReceive::begin_direct(ConstBytes rest) {
  if (termination().ended() || delivery().held()) return false;
  const std::optional<mpa::PartialFpdu> partial = deframer_.partial_fpdu(rest);
  if (!partial || partial->missing < kLongFpdu) return false;
  const auto direct = segments_.begin_direct(partial->ulpdu, partial->missing);
  if (!direct) return false;
  direct_placement_.begin(*partial, direct->segment, direct->placed, direct->took_receive);
  return true;
}

RcEnd RcReceive::read_direct(llp::Stream& stream, Bytes buffer) {
  const RcDirectPlacement& direct = direct_placement_;
  const std::optional<ddp::PlacementTarget> target = segments_.target_of(direct.segment());
  if (!target) {  // guard(rows:revoked-under-way)
    segments_.refuse_direct(direct.segment(), direct.header(), direct.ulpdu_bytes());
    direct_placement_.end();
    return termination().reason();
  }
  RcDirectPlacement::Pieces pieces;
  const size_t count = direct.room(*target, buffer, pieces);
  if (!book(stream.receive_into(std::span(pieces).first(count)))) return conclude();
  deframer_.came(stream.received_needs_crc(), true);
  std::optional<ConstBytes> rest = direct_placement_.add(came_, buffer);
  if (!rest) return termination().reason();
  finish_direct();
  if (!termination().ended()) rest = rest->subspan(consume(*rest));
  if (!begin_direct(*rest)) partial_fpdus_.assign(*rest);
  return conclude();
}

void RcReceive::finish_direct() {
  const RcDirectPlacement& whole = direct_placement_;
  direct_placement_.end();
  deframer_.step(mpa::fpdu_bytes(whole.ulpdu_bytes()));
  heard_ = true;
  expects_long_ = kExpectLong;
  counters_.add(Counter::rc_rx_fpdus);
  segments_.finish_direct(whole.segment(), whole.header(), whole.ulpdu_bytes());
}

// --- The end of the stream.

void RcReceive::abandon(WcStatus status) {
  // guard(direct-placement): => const bool only_begun = false;
  // guard(direct-placement): => const bool only_begun = direct_placement_.under_way();
  const bool only_begun = direct_placement_.under_way() && direct_placement_.took_receive();
  if (only_begun) return give_back();
  forget();
  delivery().finish(status);
}

/// The bytes of an unfinished FPDU, and the memory that was needed for it.
void RcReceive::forget() {
  direct_placement_.end();
  partial_fpdus_.release();
  deframer_ = {};
}

void RcReceive::give_back() {
  forget();
  delivery().give_back();
}

}  // namespace diwarp::rnic
