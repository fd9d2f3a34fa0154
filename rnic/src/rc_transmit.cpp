// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc_transmit.h"

#include <algorithm>

#include "base/crc32c.h"
#include "ddp/scatter.h"
#include "rdmap/stream.h"
#include "rnic/queue_pair.h"

namespace diwarp::rnic {

/// The pieces of one call to the stream.
class RcTransmit::Burst {
 public:
  explicit Burst(Context& context) : context_(context) {}

  /// The entry at this place in the send queue; null where there is none, or where it or one before
  /// it may not be read. The memory of each entry is judged once in a burst.
  const SendEntry* entry(uint64_t place);
  /// The oldest entry may not be read.
  bool oldest_refused() const { return refused_ && judged_ == 0; }

  /// Adds an FPDU of the entry at `place` without its first `skip` bytes. False if there is no
  /// room; else `payload` holds the pieces of its payload.
  bool add(const Fpdu& fpdu, size_t skip, uint64_t place, std::span<const ConstBytes>& payload);

  std::span<const ConstBytes> pieces() const { return {pieces_.data(), count_}; }
  size_t bytes() const { return bytes_; }

 private:
  // An FPDU out of the longest list has to fit, and a burst of FPDUs of the usual three pieces.
  static constexpr size_t kMaxPieces = 128;
  static_assert(kMaxPieces >= kMaxSge + 2 && kMaxPieces >= 3 * kBurstFpdus);

  void seek(uint64_t place, uint64_t offset);

  Context& context_;
  std::array<ConstBytes, kMaxPieces> pieces_;
  size_t count_ = 0;
  size_t bytes_ = 0;
  uint64_t judged_ = 0;   // entries, from the oldest on, that may be read
  bool refused_ = false;  // the one behind them may not
  uint64_t place_ = UINT64_MAX;
  ddp::SgeCursor cursor_;  // in the entry at place_
};

const SendEntry* RcTransmit::Burst::entry(uint64_t place) {
  while (judged_ <= place && !refused_) {
    const SendEntry* next = context_.sends.pending(judged_);
    if (next == nullptr) return nullptr;
    refused_ = !context_.queue_pair.may_send(*next);
    if (!refused_) ++judged_;
  }
  return place < judged_ ? context_.sends.pending(place) : nullptr;
}

void RcTransmit::Burst::seek(uint64_t place, uint64_t offset) {
  if (place != place_) cursor_ = ddp::SgeCursor(context_.sends.pending(place)->sges);
  place_ = place;
  cursor_.seek(offset);
}

bool RcTransmit::Burst::add(const Fpdu& fpdu, size_t skip, uint64_t place,
                            std::span<const ConstBytes>& payload) {
  const std::span<ConstBytes> room = std::span(pieces_).subspan(count_);
  if (room.size() < 2) return false;
  const size_t skip_header = std::min(skip, fpdu.header.size());
  const size_t skip_payload = std::min<size_t>(skip - skip_header, fpdu.length);
  const size_t skip_trailer = skip - skip_header - skip_payload;
  const size_t length = fpdu.length - skip_payload;
  seek(place, fpdu.offset + skip_payload);
  const size_t taken = cursor_.take(length, room.subspan(1, room.size() - 2));
  if (taken == 0 && length != 0) return false;
  room[0] = ConstBytes(fpdu.header).subspan(skip_header);
  payload = room.subspan(1, taken);
  room[taken + 1] = ConstBytes(fpdu.trailer).first(fpdu.trailer_bytes).subspan(skip_trailer);
  count_ += taken + 2;
  bytes_ += fpdu.bytes() - skip;
  return true;
}

void RcTransmit::start(mpa::Agreement agreement, bool initiator) {
  allowed_ = initiator;
  crc_ = agreement.crc;
  max_payload_ = 0;
  first_ = count_ = waiting_bytes_ = sent_ = 0;
  next_entry_ = next_offset_ = 0;
  next_msn_ = 1;
}

bool RcTransmit::at_boundary() const {
  if (count_ == 0) return next_offset_ == 0;
  return sent_ == 0 && framed(0).offset == 0;
}

RcTransmit::Result RcTransmit::run(Context context, Time now) {
  if (!allowed_ || context.sends.pending() == nullptr) return {};
  refresh_segment(context.stream, now);
  Burst burst(context);
  if (gather(burst)) frame(burst);
  if (burst.oldest_refused()) return {.fault = Fault::bad_memory};
  const llp::IoResult sent = context.stream.send(burst.pieces());
  if (sent.status == llp::IoStatus::failed) return {.fault = Fault::stream_failed};
  Result result{.fpdus = advance(context, sent.bytes)};
  if (sent.bytes < burst.bytes())
    result.pending = Pending::writable;
  else if (context.sends.pending() != nullptr)
    result.pending = Pending::more;
  return result;
}

void RcTransmit::refresh_segment(const llp::Stream& stream, Time now) {
  if (max_payload_ != 0 && now - measured_ < kSegmentRefresh) return;
  max_payload_ = mpa::mulpdu(stream.maximum_segment()) - ddp::kUntaggedHeaderBytes;
  measured_ = now;
}

/// Puts what is framed already into the burst. False if it does not hold all of it.
bool RcTransmit::gather(Burst& burst) const {
  uint64_t place = 0;
  size_t skip = sent_;
  for (size_t index = 0; index < count_; ++index, skip = 0) {
    const Fpdu& fpdu = framed(index);
    std::span<const ConstBytes> payload;
    if (burst.entry(place) == nullptr || !burst.add(fpdu, skip, place, payload)) return false;
    if (fpdu.last) ++place;
  }
  return true;
}

void RcTransmit::frame(Burst& burst) {
  while (count_ < kBurstFpdus && waiting_bytes_ < kBurstBytes) {
    const SendEntry* entry = burst.entry(next_entry_);
    if (entry == nullptr || !frame_next(burst, *entry)) return;
  }
}

/// False if the burst has no room for it.
bool RcTransmit::frame_next(Burst& burst, const SendEntry& entry) {
  Fpdu& fpdu = framed(count_);
  const uint64_t length = std::min<uint64_t>(max_payload_, entry.length - next_offset_);
  fpdu.offset = static_cast<uint32_t>(next_offset_);
  fpdu.length = static_cast<uint32_t>(length);
  fpdu.last = next_offset_ + length == entry.length;
  const size_t ulpdu = ddp::kUntaggedHeaderBytes + length;
  fpdu.trailer_bytes = static_cast<uint8_t>(mpa::pad_bytes(ulpdu) + mpa::kCrcBytes);
  std::span<const ConstBytes> payload;
  if (!burst.add(fpdu, 0, next_entry_, payload)) return false;
  encode(fpdu, entry, payload);
  ++count_;
  waiting_bytes_ += fpdu.bytes();
  next_offset_ = fpdu.last ? 0 : next_offset_ + length;
  if (!fpdu.last) return true;
  ++next_entry_;
  ++next_msn_;
  return true;
}

void RcTransmit::encode(Fpdu& fpdu, const SendEntry& entry,
                        std::span<const ConstBytes> payload) const {
  const size_t ulpdu = ddp::kUntaggedHeaderBytes + fpdu.length;
  mpa::encode_length(ulpdu, fpdu.header);
  rdmap::encode_send_header({.solicited = has_flag(entry.flags, SendFlags::solicited),
                             .last = fpdu.last,
                             .msn = next_msn_,
                             .message_offset = fpdu.offset},
                            Bytes(fpdu.header).subspan(mpa::kLengthBytes));
  Crc32c crc;
  if (crc_) {
    crc.update(fpdu.header);
    for (ConstBytes piece : payload) crc.update(piece);
  }
  mpa::encode_trailer(ulpdu, crc_ ? &crc : nullptr, fpdu.trailer);
}

/// Books what the stream took. Returns how many FPDUs are done.
size_t RcTransmit::advance(Context& context, size_t bytes) {
  context.counters.add(Counter::rc_tx_bytes, bytes);
  size_t done = 0;
  while (bytes != 0) {
    const Fpdu& fpdu = framed(0);
    const size_t taken = std::min(bytes, fpdu.bytes() - sent_);
    bytes -= taken;
    sent_ += taken;
    if (sent_ < fpdu.bytes()) break;
    sent_ = 0;
    waiting_bytes_ -= fpdu.bytes();
    if (fpdu.last) {
      context.sends.complete(WcStatus::success);
      --next_entry_;
    }
    first_ = (first_ + 1) % kBurstFpdus;
    --count_;
    ++done;
  }
  context.counters.add(Counter::rc_tx_fpdus, done);
  return done;
}

}  // namespace diwarp::rnic
