// SPDX-License-Identifier: Apache-2.0
#include "rnic/ud_transmit.h"

#include <algorithm>
#include <cerrno>

#include "base/crc32c.h"
#include "rdmap/datagram.h"
#include "rnic/queue_pair.h"

namespace diwarp::rnic {

void UdTransmit::start(uint32_t incarnation, uint32_t first_msn) {
  incarnation_ = incarnation;
  next_msn_ = first_msn;
  offset_ = 0;
  resized_ = false;
}

Served UdTransmit::run(Context context, Time now) {
  if (pacer_.limited()) pacer_.refill(now);
  context.burst.clear();
  fill(context);
  if (context.burst.size() == 0) return {};
  const llp::SendResult result = context.link.send(context.burst.datagrams());
  advance(context, result.sent);
  Served served{result.sent, Pending::nothing};
  if (result.status == llp::SendStatus::refused) {
    served.pending = after_refusal(context, result.error);
  } else if (result.status == llp::SendStatus::would_block) {
    context.counters.add(Counter::tx_would_block);
    served.pending = Pending::writable;
  } else if (context.sends.pending() != nullptr && pacer_.may_send()) {
    served.pending = Pending::more;
  }
  return served;
}

void UdTransmit::fill(Context& context) {
  uint64_t offset = offset_;
  uint32_t msn = next_msn_;
  for (uint64_t ahead = 0; !context.burst.full() && pacer_.may_send(); ++ahead, ++msn, offset = 0) {
    const SendEntry* entry = context.sends.pending(ahead);
    if (entry == nullptr) return;
    if (context.queue_pair.may_send(*entry)) {
      if (!add_message(context, *entry, msn, offset)) return;
      continue;
    }
    if (context.burst.size() != 0) return;  // its turn comes when those before it are out
    finish(context, WcStatus::local_protection_error, 0);
    --ahead;  // the queue has moved up
  }
}

bool UdTransmit::add_message(Context& context, const SendEntry& entry, uint32_t msn,
                             uint64_t offset) {
  const size_t path = context.link.max_datagram(entry.destination);
  const size_t datagram = segment_ == 0 ? path : std::min<size_t>(segment_, path);
  const uint64_t payload = datagram - std::min(datagram - 1, rdmap::kSendOverhead);
  cursor_ = ddp::SgeCursor(entry.sges);
  if (offset != 0) cursor_.seek(offset);
  do {
    const uint64_t length = std::min(payload, entry.length - offset);
    if (!add_segment(context, entry, msn, offset, length)) return false;
    offset += length;
  } while (offset < entry.length && !context.burst.full() && pacer_.may_send());
  return offset == entry.length;
}

bool UdTransmit::add_segment(Context& context, const SendEntry& entry, uint32_t msn,
                             uint64_t offset, uint64_t length) {
  DatagramBurst& burst = context.burst;
  const std::span<ConstBytes> room = burst.payload_pieces();
  const size_t pieces = room.empty() ? 0 : cursor_.take(length, room);
  if (room.empty() || (pieces == 0 && length != 0)) return false;
  rdmap::SendSegment segment;
  segment.incarnation = incarnation_;
  segment.solicited = has_flag(entry.flags, SendFlags::solicited);
  segment.last = offset + length == entry.length;
  segment.q_key = entry.q_key;
  segment.msn = msn;
  segment.message_offset = static_cast<uint32_t>(offset);
  const size_t header = rdmap::encode_send_headers(segment, burst.header());

  Crc32c crc;
  crc.update(burst.header().first(header));
  for (ConstBytes piece : room.first(pieces)) crc.update(piece);
  rdmap::encode_datagram_crc(crc.value(), burst.trailer());
  burst.add(entry.destination, header, pieces, {offset + length, segment.last});
  pacer_.spend(header + length + rdmap::kDatagramCrcBytes);
  return true;
}

/// Books what was sent. What was not is cut anew next time.
void UdTransmit::advance(Context& context, size_t sent) {
  const std::span<const llp::OutgoingDatagram> datagrams = context.burst.datagrams();
  for (const llp::OutgoingDatagram& unsent : datagrams.subspan(sent)) pacer_.refund(unsent.size());
  uint64_t bytes = 0;
  for (size_t index = 0; index < sent; ++index) {
    const DatagramBurst::Mark& mark = context.burst.mark(index);
    bytes += datagrams[index].size();
    if (mark.last)
      finish(context, WcStatus::success, 0);
    else
      offset_ = mark.end;
  }
  if (sent == 0) return;
  resized_ = false;
  context.counters.add(Counter::tx_datagrams, sent);
  context.counters.add(Counter::tx_bytes, bytes);
}

/// The network refuses a datagram of the oldest message: its path MTU may have shrunk, which the
/// link knows by now, so it is cut anew once. Any other refusal ends the message.
Pending UdTransmit::after_refusal(Context& context, int error) {
  context.counters.add(Counter::tx_errors);
  if (error == EMSGSIZE && !resized_) {
    resized_ = true;
    return Pending::more;
  }
  finish(context, WcStatus::local_qp_operation_error, static_cast<uint32_t>(error));
  return context.sends.pending() != nullptr ? Pending::more : Pending::nothing;
}

void UdTransmit::finish(Context& context, WcStatus status, uint32_t vendor_error) {
  context.sends.complete(status, vendor_error);
  ++next_msn_;
  offset_ = 0;
  resized_ = false;
}

}  // namespace diwarp::rnic
