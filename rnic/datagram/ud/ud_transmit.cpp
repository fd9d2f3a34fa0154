// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_transmit.h"

#include <algorithm>
#include <cerrno>

#include "rnic/datagram/send_completion.h"
#include "rnic/datagram/ud/ud_reader.h"

namespace diwarp::rnic {

void UdTransmit::set_first_msn(uint32_t first_msn) {
  next_ = {first_msn, first_msn};
  offset_ = 0;
  size_refusals_.clear();
}

void UdTransmit::fill(DatagramBuilder& builder, Time now) {
  const SendEntry* entry = oldest_message(now);
  uint64_t offset = offset_;
  Msns msns = next_;
  for (uint64_t ahead = 1; entry != nullptr; ++ahead, offset = 0) {
    if (!add_message(builder, *entry, msns.of(entry->opcode)++, offset) || !builder.open()) return;
    entry = sends_.pending(ahead);
    // A request that is no message to send has its turn when those before it are out.
    if (entry != nullptr && !can_send(*entry)) return builder.close();
  }
}

/// The oldest request, once that is a message that can be sent; null if there is none.
const SendEntry* UdTransmit::oldest_message(Time now) {
  while (SendEntry* entry = sends_.pending()) {
    if (can_send(*entry)) return entry;
    if (!process_request(*entry, now)) return nullptr;
  }
  return nullptr;
}

/// Does the oldest request, which is no message that can be sent. False: it has to wait.
bool UdTransmit::process_request(SendEntry& entry, Time now) {
  const rdmap::WrInfo& info = rdmap::info_of(entry.opcode);
  if (info.local) {
    sends_.complete(do_local(protection_, records_, entry));
    return true;
  }
  // guard(reads): condition => info.responded
  if (info.responded && protection_.may_write(entry.sges)) return begin_read(entry, now);
  end_oldest(WcStatus::local_protection_error, 0);
  return true;
}

bool UdTransmit::begin_read(SendEntry& entry, Time now) {
  const UdReader::Begun begun = reader_.begin_read(entry, now);
  if (begun == UdReader::Begun::no_memory) end_oldest(WcStatus::local_qp_operation_error, ENOMEM);
  return begun != UdReader::Begun::full;
}

/// Whether the request is a message, and its memory may be used.
bool UdTransmit::can_send(const SendEntry& entry) const {
  // guard(region): without && may_send(protection_, entry)
  return rdmap::info_of(entry.opcode).gathers && may_send(protection_, entry);
}

/// False when the burst has no room for all of it.
bool UdTransmit::add_message(DatagramBuilder& builder, const SendEntry& entry, uint32_t msn,
                             uint64_t offset) {
  rdmap::DatagramSegment header = header_of(entry, msn);
  const size_t most =
      ddp::max_payload(builder.max_body(entry.destination),
                       rdmap::segment_header_bytes(header.opcode, header.has_immediate));
  cursor_ = ddp::SgeCursor(entry.sges);
  if (offset != 0) cursor_.seek(offset);
  ddp::Segment segment;
  do {
    segment = ddp::next_segment(entry.length, offset, most);
    if (!add_segment(builder, entry, header, segment)) {
      builder.close();
      return false;
    }
    offset = segment.end();
  } while (!segment.last && builder.open());
  return segment.last;
}

bool UdTransmit::add_segment(DatagramBuilder& builder, const SendEntry& entry,
                             rdmap::DatagramSegment& header, const ddp::Segment& segment) {
  const std::span<ConstBytes> pieces = builder.payload_pieces();
  const size_t count = pieces.empty() ? 0 : cursor_.take_pieces(segment.length, pieces);
  if (pieces.empty() || (count == 0 && segment.length != 0)) return false;
  segment.set_place(header, entry.remote.offset);
  const size_t bytes = rdmap::encode_segment_headers(header, builder.header());
  builder.add(entry.destination, {.flags = rdmap::flags_of(header)}, bytes, count,
              {.source = this, .value = segment.end(), .last = segment.last});
  return true;
}

void UdTransmit::sent(const DatagramTag& tag) {
  size_refusals_.clear();
  if (!tag.last) {
    offset_ = tag.value;
    return;
  }
  end_oldest(WcStatus::success, 0);
}

/// Its path MTU may have shrunk, which the link knows by now, so it is cut anew. Any other refusal
/// ends the message.
void UdTransmit::refused(const DatagramTag&, int error) {
  if (error == EMSGSIZE && size_refusals_.may_cut_anew()) return;
  end_oldest(WcStatus::local_qp_operation_error, static_cast<uint32_t>(error));
}

void UdTransmit::end_oldest(WcStatus status, uint32_t vendor_error) {
  ++next_.of(sends_.pending()->opcode);
  sends_.complete(status, vendor_error);
  offset_ = 0;
  size_refusals_.clear();
}

}  // namespace diwarp::rnic
