// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "ddp/scatter.h"
#include "rnic/queues/work_queue.h"
#include "rnic/rc/burst_ring.h"
#include "rnic/rc/rc_fpdu.h"
#include "rnic/rc/rc_message.h"
#include "rnic/rc/rc_transmit_context.h"

namespace diwarp::rnic {

/// The pieces of one call to the stream.
class RcBurst {
 public:
  explicit RcBurst(const RcTransmitContext& context) : context_(context) {}

  const RcTransmitContext& context() const { return context_; }

  /// Whether the message's memory may be read. Checked once in a burst; false for all that come
  /// after one that may not.
  bool admit(const RcMessage& message);
  /// The same of a message that was begun in this burst: its memory was checked for that.
  void admit_begun(const RcMessage& message) { admitted_ = &message; }
  /// The message that was not admitted.
  const RcMessage* refused() const { return refused_; }

  /// Adds an FPDU of the message without its first `skip` bytes. False if there is no room; else
  /// `payload` holds the pieces of its payload.
  bool add(const RcFpdu& fpdu, size_t skip, const RcMessage& message,
           std::span<const ConstBytes>& payload);
  /// Adds bytes as they are.
  bool add_bytes(ConstBytes bytes);
  void clear() { count_ = bytes_ = 0; }

  std::span<const ConstBytes> pieces() const { return {room_.pieces.data(), count_}; }
  size_t bytes() const { return bytes_; }

 private:
  // An FPDU out of the longest list has to fit, and a burst of FPDUs of the usual three pieces.
  static constexpr size_t kMaxPieces = 128;
  static_assert(kMaxPieces >= kMaxSge + 2 && kMaxPieces >= 3 * kBurstFpdus);

  bool readable(const RcMessage& message) const;
  size_t gather(const RcFpdu& fpdu, size_t skip, const RcMessage& message,
                std::span<ConstBytes> room);

  // Pieces that are not set until they are used: a burst is made for every message.
  union Room {
    Room() {}
    std::array<ConstBytes, kMaxPieces> pieces;
  };

  const RcTransmitContext& context_;
  Room room_;
  size_t count_ = 0;
  size_t bytes_ = 0;
  const RcMessage* admitted_ = nullptr;  // the latest
  const RcMessage* refused_ = nullptr;
  const RcMessage* walked_ = nullptr;  // cursor_ is in its SGEs
  ddp::SgeCursor cursor_;
};

inline bool RcBurst::admit(const RcMessage& message) {
  if (refused_ != nullptr) return false;
  if (admitted_ == &message) return true;
  if (!readable(message)) {
    refused_ = &message;
    return false;
  }
  admitted_ = &message;
  return true;
}

inline bool RcBurst::readable(const RcMessage& message) const {
  if (message.entry != nullptr) return may_send(context_.protection, *message.entry);
  if (message.origin != RcMessage::Origin::response || message.body_bytes != 0) return true;
  // guard(rows:revoked-under-read): => return true;
  return context_.responder.source(message.read).has_value();
}

inline bool RcBurst::add(const RcFpdu& fpdu, size_t skip, const RcMessage& message,
                         std::span<const ConstBytes>& payload) {
  const std::span<ConstBytes> room = std::span(room_.pieces).subspan(count_);
  if (room.size() < 2) return false;
  const ConstBytes head = fpdu.head_view();
  const size_t skip_head = std::min(skip, head.size());
  const size_t skip_payload = std::min<size_t>(skip - skip_head, fpdu.segment.length);
  const size_t skip_trailer = skip - skip_head - skip_payload;
  const size_t length = fpdu.segment.length - skip_payload;
  size_t taken = 0;
  if (length != 0) {
    taken = gather(fpdu, skip_payload, message, room.subspan(1, room.size() - 2));
    if (taken == 0) return false;
  }
  room[0] = head.subspan(skip_head);
  payload = room.subspan(1, taken);
  room[taken + 1] = ConstBytes(fpdu.trailer).first(fpdu.trailer_bytes).subspan(skip_trailer);
  count_ += taken + 2;
  bytes_ += fpdu.whole - skip;
  return true;
}

/// The pieces of an FPDU's payload behind `skip`. Returns their number, 0 if `room` is too small.
inline size_t RcBurst::gather(const RcFpdu& fpdu, size_t skip, const RcMessage& message,
                              std::span<ConstBytes> room) {
  const size_t length = fpdu.segment.length - skip;
  if (fpdu.staged != nullptr) {
    if (room.empty()) return 0;
    room[0] = ConstBytes(fpdu.staged + skip, length);
    return 1;
  }
  if (walked_ != &message) cursor_ = ddp::SgeCursor(message.payload());
  walked_ = &message;
  cursor_.seek(fpdu.segment.offset + skip);
  return cursor_.take_pieces(length, room);
}

inline bool RcBurst::add_bytes(ConstBytes bytes) {
  if (count_ == kMaxPieces) return false;
  room_.pieces[count_++] = bytes;
  bytes_ += bytes.size();
  return true;
}

}  // namespace diwarp::rnic
