// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_requests.h"

#include <utility>

#include "ddp/placement.h"
#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

using dgram::MessageKind;
using dgram::TxTag;

/// How long after it was first sent a message cannot have been delivered by a peer that says it
/// does not know the association (it forgets after a second of silence, at the earliest).
constexpr Duration kSurelyUndelivered = std::chrono::milliseconds(500);

WcStatus status_of(const TerminateCode& code) {
  constexpr uint8_t kRdmap = 0;
  constexpr uint8_t kDdp = 1;
  constexpr uint8_t kProtection = 1;  // of RDMAP: remote protection; of DDP: tagged buffer
  const bool access = (code.layer == kRdmap || code.layer == kDdp) && code.type == kProtection;
  return access ? WcStatus::remote_access_error : WcStatus::remote_operation_error;
}

OutboundRead* find(const RdPeer& peer, STag sink) {
  for (OutboundRead& read : peer.work.reads)
    if (read.request.sink_stag == sink) return &read;
  return nullptr;
}

/// Its place is free: it was answered, or refused.
void forget(IndexedPool<OutboundRead>& reads, RdPeer& peer, OutboundRead& read) {
  // An honest peer that answers has acknowledged the request.
  if (read.sequence >= peer.sender().window().first_unacknowledged())
    peer.sender().scoreboard().give_up({MessageKind::read_request, read.msn});
  peer.work.cursor.free_place();
  peer.work.reads.remove(read);
  reads.give(read);
}

}  // namespace

dgram::MessageName message_of(const SendEntry& entry) {
  const bool record = rdmap::is_record(entry.opcode);
  return {record ? MessageKind::write_record : MessageKind::send, entry.in_flight.msn};
}

dgram::MessageName request_of(const SendEntry& entry, uint64_t offset) {
  return {MessageKind::read_request,
          entry.in_flight.msn + static_cast<uint32_t>(offset / rdmap::kMaxReadRequest)};
}

rdmap::ReadRequest read_request(const SendEntry& entry, const TxTag& tag, STag sink) {
  return {.sink_stag = sink,
          .sink_offset = 0,
          .length = tag.length,
          .source_stag = entry.remote.stag,
          .source_offset = entry.remote.offset + tag.offset};
}

// guard(drawn-keys): random_sip_key() => SipKey{}
RdRequests::RdRequests(const ddp::ProtectionContext& protection, SendQueue& sends, ErrorScope scope)
    : protection_(protection), sends_(sends), sinks_(random_sip_key()), scope_(scope) {}

void RdRequests::set_first_msn(uint32_t first_msn) {
  msns_.start(first_msn);
  fatal_ = ended_ = false;
}

// --- Requests.

uint32_t RdMsns::take(const SendEntry& entry) {
  if (rdmap::is_record(entry.opcode)) return record_++;
  if (!is_read(entry)) return send_++;
  const uint64_t last = entry.length == 0 ? 0 : (entry.length - 1) / rdmap::kMaxReadRequest;
  return std::exchange(request_, request_ + static_cast<uint32_t>(last) + 1);
}

void RdRequests::add(RdPeer& peer, SendEntry& entry) {
  entry.in_flight.missing = entry.length;
  entry.in_flight.msn = msns_.take(entry);
  if (peer.work.requests.empty()) peer.work.rewinds.nothing_left();
  peer.work.requests.push_back(entry);
  peer.work.cursor.added(entry);
}

bool RdRequests::has_memory(const SendEntry& entry) const {
  return rdmap::info_of(entry.opcode).gathers ? may_send(protection_, entry)
                                              : protection_.may_write(entry.sges);
}

/// The entry's place in the send queue is free afterwards.
void RdRequests::finish(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error) {
  peer.work.cursor.remove(entry);
  peer.work.requests.remove(entry);
  peer.work.rewinds.progress();
  sends_.answered(entry, status, vendor_error);
  ended_ = true;
}

/// The message ends for the peer as well: skips stand for what of it is not acknowledged, and where
/// its end was not cut yet, one more closes it. Read Requests that were sent are answered all the
/// same, and only then is their place free.
void RdRequests::fail(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error) {
  if (is_read(entry)) {
    for (OutboundRead& read : peer.work.reads)
      if (read.entry == &entry) read.entry = nullptr;
  } else {
    peer.sender().scoreboard().give_up(message_of(entry));
    if (peer.work.cursor.is_within(entry)) peer.work.cursor.close(message_of(entry));
  }
  finish(peer, entry, status, vendor_error);
  if (status == WcStatus::local_protection_error) fatal_ = true;
}

void RdRequests::fail_remotely(RdPeer& peer, SendEntry& entry, WcStatus status) {
  if (scope_ == ErrorScope::queue_pair) fatal_ = true;
  fail(peer, entry, status);
}

void RdRequests::fail_all(RdPeer& peer, WcStatus status) {
  if (!peer.work.requests.empty() && scope_ == ErrorScope::queue_pair) fatal_ = true;
  drop_reads(peer);
  while (SendEntry* const entry = peer.work.requests.front()) finish(peer, *entry, status, 0);
}

bool only_reads(const RdPeer& peer) {
  for (const SendEntry& entry : peer.work.requests)
    if (!is_read(entry)) return false;
  return true;
}

bool RdRequests::can_repeat(const RdPeer& peer, Time now) const {
  const SendEntry* const first = peer.work.requests.front();
  if (peer.sender().window().idle()) return peer.work.cursor.at_beginning(first);
  if (first == nullptr) return false;
  const TxTag& oldest =
      peer.sender().scoreboard().tag(peer.sender().window().first_unacknowledged());
  const bool of_first = is_read(*first) ? oldest.message.kind == MessageKind::read_request &&
                                              reads_.at(oldest.object).entry == first
                                        : oldest.message == message_of(*first);
  return of_first && oldest.offset == 0 &&
         now - peer.sender().outstanding_since() < kSurelyUndelivered;
}

void RdRequests::rewind(RdPeer& peer) {
  drop_reads(peer);
  peer.work.cursor.rewind(peer.work.requests.front());
  for (SendEntry& entry : peer.work.requests) entry.in_flight.missing = entry.length;
}

void RdRequests::drop_reads(RdPeer& peer) {
  while (OutboundRead* const read = peer.work.reads.front()) {
    peer.work.reads.remove(*read);
    reads_.give(*read);
  }
  peer.work.cursor.free_all_places();
}

// --- Datagrams.

uint32_t RdRequests::add_read(RdPeer& peer, const TxTag& tag, STag sink, uint64_t sequence) {
  SendEntry& entry = sends_.at(tag.object);
  OutboundRead& read = reads_.take();
  read.entry = &entry;
  read.msn = tag.message.number;
  read.sequence = sequence;
  read.begin = tag.offset;
  read.request = read_request(entry, tag, sink);
  peer.work.reads.push_back(read);
  return read.index;
}

void RdRequests::acknowledged(RdPeer& peer, const TxTag& tag) {
  SendEntry& entry = sends_.at(tag.object);
  if (uint64_t{tag.offset} + tag.length == entry.length) finish(peer, entry, WcStatus::success, 0);
}

void RdRequests::refused(RdPeer& peer, const TxTag& tag, TerminateCode code) {
  if (tag.message.kind != MessageKind::read_request)
    return fail_remotely(peer, sends_.at(tag.object), status_of(code));
  OutboundRead& refused = reads_.at(tag.object);
  SendEntry* const entry = refused.entry;
  forget(reads_, peer, refused);
  if (entry != nullptr) fail_remotely(peer, *entry, status_of(code));
}

// --- Reads.

Verdict RdRequests::take_response(RdPeer& peer, const rdmap::DatagramSegment& segment) {
  OutboundRead* const read = find(peer, segment.stag);
  if (read == nullptr) return Verdict::dropped(Counter::drop_response);
  const uint64_t end = read->received + segment.payload.size();
  const bool fits = segment.tagged_offset == read->received && end <= read->request.length &&
                    segment.last == (end == read->request.length);
  if (!fits && !read->skipped && read->entry != nullptr)
    fail_remotely(peer, *read->entry, WcStatus::bad_response_error);
  if (fits && !read->skipped && read->entry != nullptr) {
    place(peer, *read, segment);
    return Verdict::accepted();
  }
  // The rest of a response that is not wanted any more, or that a failure will end.
  read->received = static_cast<uint32_t>(end);
  if (read->entry == nullptr && segment.last) forget(reads_, peer, *read);
  return Verdict::dropped(Counter::drop_response);
}

void RdRequests::place(RdPeer& peer, OutboundRead& read, const rdmap::DatagramSegment& segment) {
  SendEntry& entry = *read.entry;
  peer.work.rewinds.progress();
  const uint64_t at = read.begin + read.received;
  read.received += static_cast<uint32_t>(segment.payload.size());
  const std::optional<ddp::PlacementTarget> target = protection_.target(entry.sges);
  if (target)
    target->place(at, segment.payload);
  else
    fail(peer, entry, WcStatus::local_protection_error);
  if (segment.last) forget(reads_, peer, read);
  if (!target) return;
  entry.in_flight.missing -= segment.payload.size();
  if (entry.in_flight.missing != 0 || !segment.last) return;
  entry.operands = ValidityMap(entry.length, {0, entry.length});
  finish(peer, entry, WcStatus::success, 0);
}

void RdRequests::take_skip(RdPeer& peer, STag sink) {
  if (OutboundRead* const read = find(peer, sink)) read->skipped = true;
}

void RdRequests::take_failure(RdPeer& peer, STag sink, TerminateCode code) {
  OutboundRead* const read = find(peer, sink);
  if (read == nullptr) return;
  SendEntry* const entry = read->entry;
  forget(reads_, peer, *read);
  if (entry != nullptr) fail_remotely(peer, *entry, status_of(code));
}

}  // namespace diwarp::rnic
