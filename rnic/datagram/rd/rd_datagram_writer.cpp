// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_datagram_writer.h"

#include "ddp/segmentation.h"
#include "ddp/stag_table.h"
#include "dgram/reorder_buffer.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "rnic/datagram/rd/rd_peer.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"

namespace diwarp::rnic {

using dgram::MessageKind;
using dgram::RdKind;
using Act = RdPlanned::Act;

size_t RdPeerBurst::max_payload(const SendEntry* entry) const {
  const bool is_response = entry == nullptr;
  const size_t header =
      is_response ? rdmap::segment_header_bytes(rdmap::Opcode::read_response, false)
                  : rdmap::segment_header_bytes(opcode_of(*entry), entry->immediate() != nullptr);
  return ddp::max_payload(body, dgram::kRdHeaderBytes + header);
}

void RdDatagramWriter::add(RdPeerBurst& burst, const RdPlanned& planned, uint8_t flags,
                           size_t header, size_t pieces) {
  const size_t index = burst.builder.size();
  RdPlanned complete = planned;
  complete.peer = &burst.peer;
  plan_.put(index, complete);
  burst.builder.add({burst.peer.address(), burst.peer.local},
                    {.datagram_class = dgram::DatagramClass::reliable, .flags = flags}, header,
                    pieces, {.source = &source_, .value = index});
  ++burst.planned;
}

void RdDatagramWriter::add_open(RdPeer& peer, DatagramBuilder& builder, Time now) {
  RdPeerBurst burst{
      .peer = peer, .builder = builder, .now = now, .names = peer.handshake().header(RdKind::open)};
  burst.names.window = peer.receiver().window(buffer_.room(peer.host.buffered));
  burst.names.flags |= RdAssociations::flags(&peer, now);
  size_t bytes = dgram::encode_rd_header(burst.names, builder.header());
  bytes += dgram::encode_rd_proof(peer.handshake().proof(), builder.header().subspan(bytes));
  add(burst, {.act = Act::open}, 0, bytes, 0);
}

bool RdDatagramWriter::add_sequenced(RdPeerBurst& burst, const RdPlanned& planned) {
  burst.names.sequence = static_cast<uint32_t>(planned.sequence);
  if (planned.part.skip) return add_skip(burst, planned), true;
  if (planned.part.tag.failure) return add_failure(burst, planned), true;
  switch (planned.part.tag.message.kind) {
    case MessageKind::send:
    case MessageKind::write_record:
      return add_segment(burst, planned);
    case MessageKind::read_request:
      return add_request(burst, planned), true;
    case MessageKind::read_response:
      return add_response(burst, planned);
  }
  return false;
}

void RdDatagramWriter::add_cut(RdPeerBurst& burst, const RdPlanned& planned,
                               const rdmap::DatagramSegment& segment, size_t pieces) {
  size_t bytes = dgram::encode_rd_header(burst.names, burst.builder.header());
  bytes += rdmap::encode_segment_headers(segment, burst.builder.header().subspan(bytes));
  add(burst, planned, rdmap::flags_of(segment), bytes, pieces);
}

bool RdDatagramWriter::add_segment(RdPeerBurst& burst, const RdPlanned& planned) {
  const dgram::TxTag& tag = planned.part.tag;
  const SendEntry& entry = sends_.at(tag.object);
  const ddp::Segment segment = ddp::segment_of(entry.length, tag.offset, tag.length);
  if (cutting_ != &entry) {
    header_ = header_of(entry, entry.in_flight.msn);
    cursor_ = ddp::SgeCursor(entry.sges);
    cut_ = 0;
    cutting_ = &entry;
  }
  if (cut_ != segment.offset) cursor_.seek(segment.offset);
  const std::span<ConstBytes> pieces = burst.builder.payload_pieces();
  const size_t count = pieces.empty() ? 0 : cursor_.take_pieces(segment.length, pieces);
  if (pieces.empty() || (count == 0 && segment.length != 0)) {
    cutting_ = nullptr;
    burst.builder.close();  // guard(rd-gathered)
    return false;
  }
  cut_ = segment.end();
  segment.set_place(header_, entry.remote.offset);
  add_cut(burst, planned, header_, count);
  return true;
}

bool RdDatagramWriter::add_response(RdPeerBurst& burst, const RdPlanned& planned) {
  const std::span<ConstBytes> pieces = burst.builder.payload_pieces();
  const dgram::TxTag& tag = planned.part.tag;
  const rdmap::ReadRequest& request = responder_.read(tag.object).request;
  const ddp::Segment segment = ddp::segment_of(request.length, tag.offset, tag.length);
  // It may have gone since it was checked, which the next look at it finds.
  const ddp::Region* const region = protection_.find(request.source_stag);
  if (pieces.empty() || (region == nullptr && segment.length != 0)) {
    burst.builder.close();
    return false;
  }
  const bool empty = segment.length == 0;
  if (!empty) pieces[0] = {region->at(request.source_offset + segment.offset), segment.length};
  add_cut(burst, planned, rdmap::response_segment(request, segment), empty ? 0 : 1);
  return true;
}

/// The first time the request is not known yet but by its entry.
void RdDatagramWriter::add_request(RdPeerBurst& burst, const RdPlanned& planned) {
  const dgram::TxTag& tag = planned.part.tag;
  if (planned.act == Act::again) {
    const rdmap::ReadRequest& request = requests_.read(tag.object).request;
    add_cut(burst, planned, rdmap::request_segment(tag.message.number, request), 0);
    return;
  }
  const rdmap::ReadRequest request = read_request(sends_.at(tag.object), tag, planned.sink);
  add_cut(burst, planned, rdmap::request_segment(tag.message.number, request), 0);
}

void RdDatagramWriter::add_failure(RdPeerBurst& burst, const RdPlanned& planned) {
  const InboundRead& read = responder_.read(planned.part.tag.object);
  dgram::RdHeader header = burst.names;
  header.kind = RdKind::failure;
  size_t bytes = dgram::encode_rd_header(header, burst.builder.header());
  bytes += dgram::encode_rd_failure({read.request.sink_stag, rdmap::to_word(read.code)},
                                    burst.builder.header().subspan(bytes));
  add(burst, planned, 0, bytes, 0);
}

void RdDatagramWriter::add_skip(RdPeerBurst& burst, const RdPlanned& planned) {
  dgram::RdHeader header = burst.names;
  header.kind = RdKind::skip;
  size_t bytes = dgram::encode_rd_header(header, burst.builder.header());
  bytes += dgram::encode_rd_skip(planned.part.tag.message, burst.builder.header().subspan(bytes));
  add(burst, planned, 0, bytes, 0);
}

void RdDatagramWriter::add_probe(RdPeerBurst& burst) {
  dgram::RdHeader header = burst.names;
  header.kind = RdKind::probe;
  header.sequence = static_cast<uint32_t>(burst.peer.sender().window().next() + burst.fresh - 1);
  add(burst, {.act = Act::probe}, 0, dgram::encode_rd_header(header, burst.builder.header()), 0);
}

void RdDatagramWriter::add_acknowledgement(RdPeerBurst& burst) {
  RdPeer& peer = burst.peer;
  dgram::RdHeader header = burst.names;
  const bool waits = peer.turn.held() && !peer.receiver().keeps_next();
  header.kind = peer.turn.refusing() ? RdKind::refusal : RdKind::acknowledgement;
  // guard(rd-send-waits): condition => false
  if (waits && !peer.turn.refusing()) header.flags |= dgram::kRdWaitsFlag;
  header.sequence = peer.turn.refusing() ? header.acknowledged + 1 : 0;
  size_t bytes = dgram::encode_rd_header(header, burst.builder.header());
  const Bytes rest = burst.builder.header().subspan(bytes);
  bytes += peer.turn.refusing()
               ? dgram::encode_rd_code(rdmap::to_word(peer.inbound.refusal()), rest)
               : dgram::encode_rd_map(peer.receiver().map(), rest);
  add(burst, {.act = Act::acknowledgement}, 0, bytes, 0);
}

}  // namespace diwarp::rnic
