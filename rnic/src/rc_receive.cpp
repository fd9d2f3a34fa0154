// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc_receive.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "ddp/scatter.h"
#include "mpa/fpdu.h"
#include "rnic/rc_queue_pair.h"

namespace diwarp::rnic {

namespace {

constexpr size_t kWholeFpdu = mpa::fpdu_bytes(mpa::kMaxUlpdu);

/// Memory grows in steps, so that it soon stops growing: to what small segments need, the largest
/// FPDU, a held stream.
constexpr size_t carry_room(size_t bytes) {
  if (bytes <= kIdleCarry) return kIdleCarry;
  return bytes <= kWholeFpdu ? kWholeFpdu : kStreamBufferBytes;
}

}  // namespace

void RcReceive::start(bool check_crc, ConstBytes leftover) {
  check_crc_ = check_crc;
  discards_ = held_ = heard_ = false;
  end_ = RcEnd::none;
  receiver_ = {};
  carry(leftover);
  counters_.add(Counter::rc_rx_bytes, leftover.size());
}

RcEnd RcReceive::read(llp::Stream& stream, Bytes buffer) {
  const ConstBytes front = carried();
  assert(front.size() < kWholeFpdu);
  entry_judged_ = false;
  came_ = 0;
  // The first read leaves room to complete the FPDU that it cuts.
  const Bytes room = buffer.subspan(front.size(), buffer.size() - front.size() - kWholeFpdu);
  if (!pull(stream, room)) return conclude(front);

  std::copy(front.begin(), front.end(), buffer.begin());
  size_t filled = front.size() + came_;
  size_t taken = consume(buffer.first(filled));
  const bool cut = end_ == RcEnd::none && !held_ && taken != filled;
  if (cut && pull(stream, buffer.subspan(filled, needed_ - (filled - taken)))) {
    filled = front.size() + came_;
    taken += consume(buffer.first(filled).subspan(taken));
  }
  const ConstBytes rest = buffer.first(filled).subspan(taken);
  carry(rest);
  return conclude(rest);
}

RcEnd RcReceive::resume() {
  held_ = false;
  entry_judged_ = false;
  carry_begin_ += consume(carried());
  if (carried().empty()) carry({});
  return end_;
}

/// An end of the stream is in order only between two messages.
RcEnd RcReceive::conclude(ConstBytes rest) {
  const bool between_messages = rest.empty() && receiver_.at_message_start();
  if (end_ == RcEnd::closed && !between_messages) end_ = RcEnd::lost;
  return end_;
}

/// True if bytes came.
bool RcReceive::pull(llp::Stream& stream, Bytes room) {
  const llp::IoResult result = stream.receive(room);
  if (result.status == llp::IoStatus::closed) end_ = RcEnd::closed;
  if (result.status == llp::IoStatus::failed) end_ = RcEnd::lost;
  if (result.status != llp::IoStatus::ok) return false;
  came_ += result.bytes;
  counters_.add(Counter::rc_rx_bytes, result.bytes);
  return true;
}

/// Takes whole FPDUs from the front while it may. Returns how many bytes they had.
size_t RcReceive::consume(ConstBytes bytes) {
  size_t done = 0;
  for (;;) {
    const mpa::Deframed framed = mpa::deframe(bytes.subspan(done), check_crc_);
    needed_ = framed.needed;
    if (framed.status == mpa::DeframeStatus::bad_crc) end_ = RcEnd::bad_crc;
    if (framed.status != mpa::DeframeStatus::fpdu || !take(framed.ulpdu)) return done;
    done += framed.consumed;
    counters_.add(Counter::rc_rx_fpdus);
  }
}

/// False if it stays where it is: held, or the connection ends.
bool RcReceive::take(ConstBytes ulpdu) {
  rdmap::StreamReceiver next = receiver_;
  const rdmap::StreamReceiver::Result judged = next.accept(ulpdu);
  if (judged.fault != rdmap::StreamFault::none) return end(RcEnd::protocol_error);
  heard_ = true;
  if (receiver_.at_message_start() && !begin_message()) return false;
  receiver_ = next;
  return place(judged.segment);
}

bool RcReceive::begin_message() {
  entry_ = receives_.take();
  if (entry_ == nullptr && !discards_) {
    held_ = !queue_pair_.await_receive();
    if (held_) return false;
    entry_ = receives_.take();
  }
  entry_judged_ = false;
  return true;
}

bool RcReceive::place(const rdmap::StreamSegment& segment) {
  if (entry_ == nullptr) return true;
  if (segment.message_offset + segment.payload.size() > entry_->capacity) {
    finish(WcStatus::local_length_error);
    return end(RcEnd::protocol_error);
  }
  if (!entry_judged_ && !queue_pair_.may_receive(*entry_)) {
    finish(WcStatus::local_protection_error);
    return end(RcEnd::bad_receive);
  }
  entry_judged_ = true;
  ddp::scatter(entry_->sges, segment.message_offset, segment.payload);
  if (segment.last) deliver(segment);
  return true;
}

bool RcReceive::end(RcEnd reason) {
  end_ = reason;
  return false;
}

void RcReceive::deliver(const rdmap::StreamSegment& segment) {
  WorkCompletion completion;
  completion.solicited = segment.solicited;
  completion.byte_count = static_cast<uint32_t>(segment.message_offset + segment.payload.size());
  complete(completion);
}

void RcReceive::finish(WcStatus status) {
  WorkCompletion completion;
  completion.status = status;
  if (entry_ != nullptr) complete(completion);
}

void RcReceive::complete(WorkCompletion completion) {
  completion.qp_number = queue_pair_.number();
  receives_.complete(*entry_, completion);
  entry_ = nullptr;
}

void RcReceive::give_back() {
  if (entry_ != nullptr) receives_.give_back(*entry_);
  entry_ = nullptr;
}

void RcReceive::carry(ConstBytes rest) {
  carry_used_ = carry_used_ || !carry_.empty() || !rest.empty();
  if (rest.size() > carry_.capacity()) carry_.reserve(carry_room(rest.size()));
  carry_.assign(rest.begin(), rest.end());
  carry_begin_ = 0;
}

bool RcReceive::trim() {
  if (std::exchange(carry_used_, false) || !carry_.empty()) return true;
  std::vector<std::byte>().swap(carry_);
  return false;
}

}  // namespace diwarp::rnic
