// SPDX-License-Identifier: Apache-2.0
// The datagrams that an RD queue pair sends, as they lie in a burst.
#include <algorithm>
#include <new>
#include <type_traits>

#include "base/byte_order.h"
#include "ddp/stag_table.h"
#include "rnic/queue_pair.h"
#include "rnic/rd_associations.h"
#include "rnic/rd_buffer.h"
#include "rnic/rd_transmit.h"
#include "rnic/ud_transmit.h"

namespace diwarp::rnic {

using dgram::RdKind;
using dgram::RdMark;

size_t RdTransmit::put_headers(Lane& lane, uint8_t flags, const dgram::RdHeader& header) {
  const Bytes out = lane.room.header();
  const size_t prefix =
      rdmap::encode_prefix(rdmap::DatagramClass::reliable, flags, incarnation_, out);
  return prefix + dgram::encode_rd_header(header, out.subspan(prefix));
}

void RdTransmit::add(Lane& lane, const Planned& planned, size_t header, size_t pieces) {
  const size_t index = lane.room.size();
  plan(index, planned);
  lane.room.add(lane.peer.address(), header, pieces,
                {.origin = this, .value = index, .object = &lane.peer});
  ++lane.planned;
}

bool RdTransmit::add_open(RdPeer& peer, DatagramRoom& room, Time now) {
  Lane lane{.peer = peer, .room = room, .now = now, .names = peer.association.header(RdKind::open)};
  lane.names.window = peer.receiver.window(buffer_.room());
  lane.names.flags = RdAssociations::flags(&peer, now);
  size_t header = put_headers(lane, 0, lane.names);
  const dgram::RdCookie& cookie = peer.association.cookie();
  std::copy(cookie.begin(), cookie.end(), room.header().begin() + static_cast<ptrdiff_t>(header));
  header += cookie.size();
  add(lane, {.act = Act::open}, header, 0);
  return false;
}

/// False if there is no room for its pieces in this burst.
bool RdTransmit::add_data(Lane& lane, Act act, uint64_t sequence, const RdMark& mark) {
  const Planned planned{.act = act, .sequence = sequence, .mark = mark};
  lane.names.sequence = static_cast<uint32_t>(sequence);
  switch (what(mark)) {
    case RdWhat::segment:
      return add_segment(lane, planned);
    case RdWhat::request:
      return add_request(lane, planned);
    case RdWhat::response:
      return add_response(lane, planned);
    case RdWhat::failure:
      return add_failure(lane, planned);
    case RdWhat::skip:
      break;
  }
  return add_skip(lane, planned);
}

void RdTransmit::add_cut(Lane& lane, const Planned& planned, const rdmap::DatagramSegment& segment,
                         size_t pieces) {
  size_t bytes = put_headers(lane, rdmap::flags_of(segment), lane.names);
  bytes += rdmap::encode_segment_headers(segment, lane.room.header().subspan(bytes));
  add(lane, planned, bytes, pieces);
}

bool RdTransmit::add_segment(Lane& lane, const Planned& planned) {
  const auto& entry = *static_cast<const SendEntry*>(planned.mark.object);
  const uint64_t offset = planned.mark.offset;
  const uint64_t length = planned.mark.length;
  if (cutting_ != &entry) {
    segment_ = segment_of(entry, entry.msn);
    cursor_ = ddp::SgeCursor(entry.sges);
    cut_ = 0;
    cutting_ = &entry;
  }
  if (cut_ != offset) cursor_.seek(offset);
  const std::span<ConstBytes> pieces = lane.room.payload_pieces();
  const size_t count = pieces.empty() ? 0 : cursor_.take(length, pieces);
  if (pieces.empty() || (count == 0 && length != 0)) {
    cutting_ = nullptr;
    return false;
  }
  cut_ = offset + length;
  cut_segment(segment_, entry, offset, length);
  add_cut(lane, planned, segment_, count);
  return true;
}

bool RdTransmit::add_response(Lane& lane, const Planned& planned) {
  const std::span<ConstBytes> pieces = lane.room.payload_pieces();
  const rdmap::ReadRequest& request = static_cast<const RdJob*>(planned.mark.object)->request;
  const uint32_t offset = planned.mark.offset;
  const uint32_t length = planned.mark.length;
  // It may have gone since it was judged, which the next look at it finds.
  const ddp::Region* const region = queue_pair_.regions().find(request.source_stag);
  if (pieces.empty() || (region == nullptr && length != 0)) return false;
  if (length != 0) pieces[0] = {region->at(request.source_offset + offset), length};
  add_cut(lane, planned, rdmap::response_segment(request, offset, length), length == 0 ? 0 : 1);
  return true;
}

bool RdTransmit::add_request(Lane& lane, const Planned& planned) {
  const auto& read = *static_cast<const RdRead*>(planned.mark.object);
  const SendEntry& entry = *read.entry;
  const rdmap::ReadRequest request = {.sink_stag = read.sink,
                                      .sink_offset = planned.mark.offset,
                                      .length = planned.mark.length,
                                      .source_stag = entry.remote.stag,
                                      .source_offset = entry.remote.offset + planned.mark.offset};
  add_cut(lane, planned, rdmap::request_segment(planned.mark.tag, request), 0);
  return true;
}

bool RdTransmit::add_failure(Lane& lane, const Planned& planned) {
  const auto& job = *static_cast<const RdJob*>(planned.mark.object);
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::failure;
  size_t bytes = put_headers(lane, 0, header);
  const Bytes rest = lane.room.header().subspan(bytes);
  store_be(rest.data(), job.request.sink_stag);
  bytes += sizeof(STag) + dgram::encode_rd_code(job.code, rest.subspan(sizeof(STag)));
  add(lane, planned, bytes, 0);
  return true;
}

bool RdTransmit::add_skip(Lane& lane, const Planned& planned) {
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::skip;
  add(lane, planned, put_headers(lane, 0, header), 0);
  return true;
}

void RdTransmit::add_probe(Lane& lane) {
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::probe;
  header.sequence = 0;
  add(lane, {.act = Act::probe}, put_headers(lane, 0, header), 0);
}

void RdTransmit::add_acknowledgement(Lane& lane) {
  RdPeer& peer = lane.peer;
  dgram::RdHeader header = lane.names;
  header.kind = peer.refusing ? RdKind::refusal : RdKind::acknowledgement;
  header.sequence = peer.refusing ? header.acknowledged + 1 : 0;
  size_t bytes = put_headers(lane, 0, header);
  const Bytes rest = lane.room.header().subspan(bytes);
  bytes += peer.refusing ? dgram::encode_rd_code(peer.refusal, rest)
                         : dgram::encode_rd_map(peer.receiver.map(), rest);
  add(lane, {.act = Act::acknowledgement}, bytes, 0);
}

void RdTransmit::plan(size_t index, const Planned& planned) {
  static_assert(sizeof(Planned) <= DatagramBurst::kNoteBytes);
  static_assert(std::is_trivially_copyable_v<Planned>);
  new (notes_[index].bytes.data()) Planned(planned);
}

const RdTransmit::Planned& RdTransmit::planned(size_t index) const {
  return *std::launder(reinterpret_cast<const Planned*>(notes_[index].bytes.data()));
}

}  // namespace diwarp::rnic
