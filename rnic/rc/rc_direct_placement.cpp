// SPDX-License-Identifier: Apache-2.0
// How RcReceive reads long FPDUs directly into the application's memory, where no CRC has to be
// right first.
#include <algorithm>
#include <array>
#include <cassert>

#include "ddp/placement.h"
#include "rnic/queues/receive_buffers.h"
#include "rnic/rc/rc_receive.h"

namespace diwarp::rnic {

/// Takes what is there of an FPDU at the front, if it is a long one that is in order in all
/// respects. Any other is left until it is whole: then it is checked as all are.
bool RcReceive::begin_direct_placement(ConstBytes rest) {
  if (end_ != RcEnd::none || held_ || ready_ != ReadyToReceive::none) return false;
  const std::optional<mpa::Beginning> begun = deframer_.beginning(rest);
  if (!begun || begun->missing < kLongFpdu) return false;
  rdmap::StreamReceiver next = receiver_;
  rdmap::StreamReceiver::Result checked = next.accept(begun->ulpdu, begun->missing);
  if (checked.fault) return false;  // guard(direct-placement)
  rdmap::StreamSegment& segment = checked.segment;
  const bool starts = receiver_.at_send_start() && goes_to_receive(segment.opcode);
  if (starts && discarded_) return false;
  const auto target = target_of(segment, starts ? parts_.receives.peek() : entry_);
  if (!target) return false;  // guard(direct-placement): condition => false

  if (starts) entry_ = parts_.receives.take_receive();
  receiver_ = next;
  const ConstBytes payload = segment.payload;
  target->place(0, payload);
  segment.missing = segment.length();
  segment.payload = {};
  const ConstBytes header = begun->ulpdu.first(begun->ulpdu.size() - payload.size());
  direct_placement_.emplace(DirectPlacement{.segment = segment,
                                            .header = {},
                                            .header_bytes = header.size(),
                                            .ulpdu_bytes = header.size() + segment.missing,
                                            .placed = payload.size(),
                                            .trailer = begun->trailer,
                                            .took_receive = starts});
  std::copy(header.begin(), header.end(), direct_placement_->header.begin());
  return true;
}

/// Where a segment's payload goes that may be placed now, a Send's into this receive.
std::optional<ddp::PlacementTarget> RcReceive::target_of(const rdmap::StreamSegment& segment,
                                                         const ReceiveEntry* entry) const {
  if (goes_to_receive(segment.opcode)) {
    if (entry == nullptr) return std::nullopt;
    const auto [found, buffer] =
        parts_.protection.check_untagged(entry->buffer(), segment.message_offset, segment.length());
    // guard(direct-placement): condition => found == ddp::BufferFault::protection
    // guard(direct-placement): condition => found == ddp::BufferFault::too_long
    if (found != ddp::BufferFault::none) return std::nullopt;
    return buffer.from(segment.message_offset);
  }
  if (segment.opcode == rdmap::Opcode::read_response) return parts_.requester.target_of(segment);
  if (segment.opcode != rdmap::Opcode::rdma_write) return std::nullopt;
  const auto checked = check_write(segment);
  // guard(direct-placement): condition => false
  if (checked.fault != ddp::RegionFault::none) return std::nullopt;
  return checked.target;
}

RcEnd RcReceive::read_direct_placement(llp::Stream& stream, Bytes buffer) {
  DirectPlacement& direct = *direct_placement_;
  const std::optional<ddp::PlacementTarget> target = target_of(direct.segment, entry_);
  if (!target) return refuse_direct_placement();  // guard(rows:revoked-under-way)
  // Behind the payload: the trailer, and the next header, which is probably of the same kind.
  const Bytes tail = buffer.first(direct.trailer + mpa::kLengthBytes + direct.header_bytes);
  if (!pull_direct_placement(stream, *target, tail)) return conclude();
  const size_t placed = std::min(came_, direct.segment.missing - direct.placed);
  const size_t behind = came_ - placed;
  direct.placed += placed;
  if (behind < direct.trailer) {  // guard(direct-placement): condition => came_ == 0
    direct.trailer -= behind;
    return end_;
  }
  ConstBytes rest = tail.first(behind).subspan(direct.trailer);
  finish_direct_placement();
  if (end_ == RcEnd::none) rest = rest.subspan(consume(rest));
  if (!begin_direct_placement(rest)) partial_fpdus_.assign(rest);
  return conclude();
}

/// Reads the rest of the payload, and what comes behind it into `tail`.
bool RcReceive::pull_direct_placement(llp::Stream& stream, const ddp::PlacementTarget& target,
                                      Bytes tail) {
  const DirectPlacement& direct = *direct_placement_;
  std::array<Bytes, kMaxSge + 1> pieces;
  const size_t count = target.pieces(direct.placed, direct.segment.missing - direct.placed, pieces);
  pieces[count] = tail;
  return book(stream.receive_into(std::span(pieces).first(count + 1)));
}

void RcReceive::finish_direct_placement() {
  const DirectPlacement whole = *direct_placement_;
  direct_placement_.reset();
  deframer_.step(mpa::fpdu_bytes(whole.ulpdu_bytes));
  heard_ = true;
  expects_long_ = kExpectLong;
  parts_.counters.add(Counter::rc_rx_fpdus);
  const rdmap::StreamSegment& segment = whole.segment;
  if (segment.opcode == rdmap::Opcode::read_response) parts_.requester.placed(segment);
  if (!goes_to_receive(segment.opcode) || !segment.last) return;
  if (!deliver(segment, whole.header_view())) offending_length_ = whole.ulpdu_bytes;
}

/// The memory has gone, or may not be written any more: handle() finds what is wrong and says it.
RcEnd RcReceive::refuse_direct_placement() {
  handle(direct_placement_->segment, direct_placement_->header_view());
  assert(end_ != RcEnd::none);
  if (offending_held_ != 0) offending_length_ = direct_placement_->ulpdu_bytes;
  direct_placement_.reset();
  return end_;
}

}  // namespace diwarp::rnic
