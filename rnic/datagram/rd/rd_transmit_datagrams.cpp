// SPDX-License-Identifier: Apache-2.0
// The datagrams that an RD queue pair sends, as they lie in a burst.
#include <algorithm>
#include <new>
#include <type_traits>

#include "ddp/stag_table.h"
#include "dgram/reorder_buffer.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/message_segments.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/rd/rd_transmit.h"

namespace diwarp::rnic {

using dgram::MessageKind;
using dgram::RdKind;

void RdTransmit::add(Lane& lane, const Planned& planned, uint8_t flags, size_t header,
                     size_t pieces) {
  const size_t index = lane.builder.size();
  Planned complete = planned;
  complete.peer = &lane.peer;
  plan(index, complete);
  lane.builder.add({lane.peer.address(), lane.peer.local},
                   {.datagram_class = dgram::DatagramClass::reliable, .flags = flags}, header,
                   pieces, {.source = this, .value = index});
  ++lane.planned;
}

bool RdTransmit::add_open(RdPeer& peer, DatagramBuilder& builder, Time now) {
  Lane lane{
      .peer = peer, .builder = builder, .now = now, .names = peer.association.header(RdKind::open)};
  lane.names.window = peer.receiver.window(buffer_.room(peer.host.buffered));
  lane.names.flags |= RdAssociations::flags(&peer, now);
  size_t bytes = dgram::encode_rd_header(lane.names, builder.header());
  bytes += dgram::encode_rd_proof(peer.association.proof(), builder.header().subspan(bytes));
  add(lane, {.act = Act::open}, 0, bytes, 0);
  return false;
}

/// False, and the burst is closed, if there is no room for its pieces in it.
bool RdTransmit::add_sequenced(Lane& lane, const Planned& planned) {
  lane.names.sequence = static_cast<uint32_t>(planned.sequence);
  if (planned.part.skip) return add_skip(lane, planned);
  if (planned.part.tag.failure) return add_failure(lane, planned);
  switch (planned.part.tag.message.kind) {
    case MessageKind::send:
    case MessageKind::write_record:
      return add_segment(lane, planned);
    case MessageKind::read_request:
      return add_request(lane, planned);
    case MessageKind::read_response:
      return add_response(lane, planned);
  }
  return false;
}

void RdTransmit::add_cut(Lane& lane, const Planned& planned, const rdmap::DatagramSegment& segment,
                         size_t pieces) {
  size_t bytes = dgram::encode_rd_header(lane.names, lane.builder.header());
  bytes += rdmap::encode_segment_headers(segment, lane.builder.header().subspan(bytes));
  add(lane, planned, rdmap::flags_of(segment), bytes, pieces);
}

bool RdTransmit::add_segment(Lane& lane, const Planned& planned) {
  const dgram::TxTag& tag = planned.part.tag;
  const SendEntry& entry = sends_.at(tag.object);
  const ddp::Segment segment = ddp::segment_of(entry.length, tag.offset, tag.length);
  if (cutting_ != &entry) {
    header_ = header_of(entry, entry.msn);
    cursor_ = ddp::SgeCursor(entry.sges);
    cut_ = 0;
    cutting_ = &entry;
  }
  if (cut_ != segment.offset) cursor_.seek(segment.offset);
  const std::span<ConstBytes> pieces = lane.builder.payload_pieces();
  const size_t count = pieces.empty() ? 0 : cursor_.take_pieces(segment.length, pieces);
  if (pieces.empty() || (count == 0 && segment.length != 0)) {
    cutting_ = nullptr;
    lane.builder.close();  // guard(rd-gathered)
    return false;
  }
  cut_ = segment.end();
  segment.set_place(header_, entry.remote.offset);
  add_cut(lane, planned, header_, count);
  return true;
}

bool RdTransmit::add_response(Lane& lane, const Planned& planned) {
  const std::span<ConstBytes> pieces = lane.builder.payload_pieces();
  const dgram::TxTag& tag = planned.part.tag;
  const rdmap::ReadRequest& request = responder_.read(tag.object).request;
  const ddp::Segment segment = ddp::segment_of(request.length, tag.offset, tag.length);
  // It may have gone since it was checked, which the next look at it finds.
  const ddp::Region* const region = protection_.find(request.source_stag);
  if (pieces.empty() || (region == nullptr && segment.length != 0)) {
    lane.builder.close();
    return false;
  }
  const bool empty = segment.length == 0;
  if (!empty) pieces[0] = {region->at(request.source_offset + segment.offset), segment.length};
  add_cut(lane, planned, rdmap::response_segment(request, segment), empty ? 0 : 1);
  return true;
}

/// The first time the request is not known yet but by its entry.
bool RdTransmit::add_request(Lane& lane, const Planned& planned) {
  const dgram::TxTag& tag = planned.part.tag;
  if (planned.act == Act::again) {
    const rdmap::ReadRequest& request = requests_.read(tag.object).request;
    add_cut(lane, planned, rdmap::request_segment(tag.message.number, request), 0);
    return true;
  }
  const rdmap::ReadRequest request = read_request(sends_.at(tag.object), tag, planned.sink);
  add_cut(lane, planned, rdmap::request_segment(tag.message.number, request), 0);
  return true;
}

bool RdTransmit::add_failure(Lane& lane, const Planned& planned) {
  const InboundRead& read = responder_.read(planned.part.tag.object);
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::failure;
  size_t bytes = dgram::encode_rd_header(header, lane.builder.header());
  bytes += dgram::encode_rd_failure({read.request.sink_stag, rdmap::to_word(read.code)},
                                    lane.builder.header().subspan(bytes));
  add(lane, planned, 0, bytes, 0);
  return true;
}

bool RdTransmit::add_skip(Lane& lane, const Planned& planned) {
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::skip;
  size_t bytes = dgram::encode_rd_header(header, lane.builder.header());
  bytes += dgram::encode_rd_skip(planned.part.tag.message, lane.builder.header().subspan(bytes));
  add(lane, planned, 0, bytes, 0);
  return true;
}

void RdTransmit::add_probe(Lane& lane) {
  dgram::RdHeader header = lane.names;
  header.kind = RdKind::probe;
  header.sequence = static_cast<uint32_t>(lane.peer.sender.next() + lane.fresh - 1);
  add(lane, {.act = Act::probe}, 0, dgram::encode_rd_header(header, lane.builder.header()), 0);
}

void RdTransmit::add_acknowledgement(Lane& lane) {
  RdPeer& peer = lane.peer;
  dgram::RdHeader header = lane.names;
  const bool waits = peer.turn.held() && !peer.receiver.keeps_next();
  header.kind = peer.turn.refusing() ? RdKind::refusal : RdKind::acknowledgement;
  // guard(rd-send-waits): condition => false
  if (waits && !peer.turn.refusing()) header.flags |= dgram::kRdWaitsFlag;
  header.sequence = peer.turn.refusing() ? header.acknowledged + 1 : 0;
  size_t bytes = dgram::encode_rd_header(header, lane.builder.header());
  const Bytes rest = lane.builder.header().subspan(bytes);
  bytes += peer.turn.refusing()
               ? dgram::encode_rd_code(rdmap::to_word(peer.inbound.refusal()), rest)
               : dgram::encode_rd_map(peer.receiver.map(), rest);
  add(lane, {.act = Act::acknowledgement}, 0, bytes, 0);
}

void RdTransmit::plan(size_t index, const Planned& planned) {
  static_assert(sizeof(Planned) <= DatagramBurst::kSourceDataBytes);
  static_assert(std::is_trivially_copyable_v<Planned>);
  new (plans_[index].bytes.data()) Planned(planned);
}

const RdTransmit::Planned& RdTransmit::planned(size_t index) const {
  return *std::launder(reinterpret_cast<const Planned*>(plans_[index].bytes.data()));
}

}  // namespace diwarp::rnic
