// SPDX-License-Identifier: Apache-2.0
// What a UD queue pair's Reads receive and send.
#include <algorithm>

#include "ddp/placement.h"
#include "rnic/datagram/ud/ud_reader.h"

namespace diwarp::rnic {

namespace {

/// The kinds of datagram in a tag.
constexpr uint64_t kEcho = 1;
constexpr uint64_t kRequest = 2;

void add_echo(DatagramSource& source, UdReadPart& part, DatagramBuilder& builder) {
  const size_t bytes =
      dgram::encode_challenge(dgram::ControlType::echo, *part.echo, builder.header());
  builder.add(part.read->entry->destination, {.datagram_class = dgram::DatagramClass::control},
              bytes, 0, {.source = &source, .value = kEcho, .object = &part});
}

void add_request(DatagramSource& source, UdReadPart& part, DatagramBuilder& builder) {
  const SendEntry& entry = *part.read->entry;
  rdmap::DatagramSegment segment =
      rdmap::request_segment(part.msn, {.sink_stag = part.sink,
                                        .sink_offset = part.sink_offset,
                                        .length = part.length,
                                        .source_stag = entry.remote.stag,
                                        .source_offset = entry.remote.offset + part.begin});
  segment.nonce = part.nonce;
  const size_t header = rdmap::encode_segment_headers(segment, builder.header());
  builder.add(entry.destination, {.flags = rdmap::flags_of(segment)}, header, 0,
              {.source = &source, .value = kRequest, .object = &part});
}

}  // namespace

// --- What comes.

Verdict UdReader::handle_response(const rdmap::DatagramSegment& segment, const Address& from,
                                  Time now) {
  UdReadPart* part = parts_.find(segment.stag);
  // guard(reads): condition => part == nullptr
  if (part == nullptr || from != part->read->entry->destination)
    return Verdict::dropped(Counter::drop_response);
  const uint64_t bytes = segment.payload.size();
  // guard(reads): without - part->sink_offset
  const uint64_t offset = segment.tagged_offset - part->sink_offset;
  // guard(reads): Verdict::dropped(Counter::drop_response) => Verdict::accepted()
  if (offset > part->length) return Verdict::dropped(Counter::drop_response);
  // guard(reads)
  if (bytes > part->length - offset) return Verdict::dropped(Counter::drop_oversized);
  if (segment.last != (offset + bytes == part->length))
    return Verdict::dropped(Counter::drop_contradiction);  // guard(reads)
  const std::optional<ddp::PlacementTarget> target = protection_.target(part->read->entry->sges);
  if (!target) {  // guard(reads): condition => false
    finish(*part->read, WcStatus::local_protection_error);
    return Verdict::dropped(Counter::drop_response);
  }
  return place(segment, *target, *part, now);
}

Verdict UdReader::place(const rdmap::DatagramSegment& segment, const ddp::PlacementTarget& target,
                        UdReadPart& part, Time now) {
  UdRead& read = *part.read;
  const uint64_t begin = part.begin + (segment.tagged_offset - part.sink_offset);
  const uint64_t before = read.valid.covered();
  part.answerable = false;
  switch (read.valid.insert(begin, begin + segment.payload.size())) {
    // guard(read-progress)
    case InsertResult::full:
      return Verdict::dropped(Counter::drop_range_limit);
    // guard(read-progress): => if (part.length != 0) target.place(begin, segment.payload);
    case InsertResult::duplicate:
      if (part.length != 0) return Verdict::dropped(Counter::drop_duplicate);
      break;
    case InsertResult::added:
    case InsertResult::partial:
      target.place(begin, segment.payload);
      read.last_sign = now;  // guard(read-progress)
      break;
  }
  part.missing -= static_cast<uint32_t>(read.valid.covered() - before);
  if (read.valid.covered() == read.entry->length)
    finish(read, WcStatus::success);
  else
    pass(part, segment.last);
  return Verdict::accepted();
}

/// Something of `part` came, its last segment perhaps: it closes those that were asked for before.
void UdReader::pass(UdReadPart& part, bool last) {
  UdRead& read = *part.read;
  for (UdReadPart* earlier = read.parts.front(); earlier != &part;
       earlier = read.parts.next(*earlier))
    earlier->close();
  // guard(read-progress): => if (last) part.close();
  if (part.missing == 0)
    parts_.revoke(part);
  else if (last)
    part.close();
  ask(read);
}

bool UdReader::handle_error(const rdmap::ErrorReport& report, const Address& from) {
  const auto request = rdmap::parse_error_headers(report.headers);
  // The headers of other messages have no nonce: it reads as 0, which a part's may be.
  if (!request || request->opcode != rdmap::Opcode::read_request) return false;
  UdReadPart* part = reads_.find_asked(from, [&](const UdReadPart& one) {
    // guard(reads): without one.msn == request->msn &&
    // guard(reads): without && one.nonce == request->nonce
    return one.msn == request->msn && one.nonce == request->nonce;
  });
  if (part == nullptr) return false;
  constexpr uint8_t kRdmapLayer = 0;
  constexpr uint8_t kRemoteProtection = 1;
  const bool access = report.code.layer == kRdmapLayer && report.code.type == kRemoteProtection;
  finish(*part->read, access ? WcStatus::remote_access_error : WcStatus::remote_operation_error);
  return true;
}

bool UdReader::handle_challenge(const dgram::Challenge& challenge, const Address& from) {
  UdReadPart* part = reads_.find_asked(from, [&](const UdReadPart& one) {
    // guard(reads): without && one.challenges < kMaxChallenges
    // guard(reads): without one.answerable &&
    // guard(reads): one.sink_offset == challenge.nonce => true
    return one.answerable && one.challenges < kMaxChallenges && one.sink_offset == challenge.nonce;
  });
  if (part == nullptr) return false;
  parts_.ask_again(*part, challenge);
  set_idle(false);  // guard(reads)
  waker_.wake();
  return true;
}

// --- Sending.

void UdReader::fill(DatagramBuilder& builder, Time) {
  end_unwritable();
  set_idle(!parts_.has_unsent());
  for (UdReadPart* part = parts_.unsent().front(); part != nullptr && builder.open();
       part = parts_.unsent().next(*part)) {
    if (part->echo) add_echo(*this, *part, builder);
    if (builder.open()) add_request(*this, *part, builder);
  }
}

/// Nothing is asked for that could not be placed. Before the burst names any part.
void UdReader::end_unwritable() {
  UdReadPart* part = parts_.unsent().front();
  while (part != nullptr) {
    const bool writable = protection_.may_write(part->read->entry->sges);
    // guard(read-progress): => if (!writable) parts_.unsent().remove(*part);
    if (!writable) finish(*part->read, WcStatus::local_protection_error);
    part = writable ? parts_.unsent().next(*part) : parts_.unsent().front();
  }
}

void UdReader::sent(const DatagramTag& tag) {
  auto& part = *static_cast<UdReadPart*>(tag.object);
  if (tag.value == kEcho) {
    part.echo.reset();
    return;
  }
  parts_.mark_asked(part);
}

void UdReader::refused(const DatagramTag& tag, int error) {
  finish(*static_cast<UdReadPart*>(tag.object)->read, WcStatus::local_qp_operation_error,
         static_cast<uint32_t>(error));
}

}  // namespace diwarp::rnic
