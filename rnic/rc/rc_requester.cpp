// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_requester.h"

#include "rdmap/opcodes.h"
#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

constexpr uint8_t kProtectionError = 1;  // of layer RDMAP, RFC 5040 section 4.8

}  // namespace

void RcRequester::start(uint16_t ord) {
  ord_ = ord;
  outstanding_ = 0;
  ready_ = false;
  placed_ = 0;
  next_id_ = answered_id_ = 0;
}

std::optional<RemoteMemory> RcRequester::sink(const SendEntry& entry) const {
  const std::optional<Sink> sink = check_sink(entry);
  if (!sink) return std::nullopt;
  return sink->name;
}

std::optional<RcRequester::Sink> RcRequester::check_sink(const SendEntry& entry) const {
  if (entry.sges.empty() || entry.length == 0) return Sink{};
  const Sge& sge = entry.sges[0];
  const std::optional<ddp::PlacementTarget> target = protection_.target(entry.sges);
  if (!target) return std::nullopt;
  const ddp::Region* const region = protection_.find(sge.lkey);
  if (region == nullptr) return std::nullopt;  // it goes away this very moment
  const auto within = static_cast<uint64_t>(static_cast<std::byte*>(sge.address) - region->memory);
  return Sink{{sge.lkey, region->base + within}, *target};
}

std::optional<TerminateCode> RcRequester::take_read_response(const rdmap::StreamSegment& segment) {
  if (ready_) return take_ready(segment);
  const SendEntry* entry = sends_.awaiting();
  // guard(requests): condition => entry == nullptr
  // guard(rows:response-asked): => if (entry == nullptr) return fault::kTaggedBaseOrBounds;
  if (entry == nullptr || !rdmap::is_read(entry->opcode)) return fault::kTaggedInvalidStag;
  const std::optional<Sink> sink = check_sink(*entry);
  // guard(reader-memory)
  if (!sink) return fail(WcStatus::local_protection_error, fault::kTaggedInvalidStag);
  if (const auto found = check_response(*entry, segment, sink->name))
    return fail(WcStatus::bad_response_error, *found);
  sink->target.place(placed_, segment.payload);  // guard(rows:read-place): placed_ => 0
  placed(segment);
  return std::nullopt;
}

std::optional<ddp::PlacementTarget> RcRequester::target_of(
    const rdmap::StreamSegment& segment) const {
  const SendEntry* entry = sends_.awaiting();
  if (ready_ || entry == nullptr || !rdmap::is_read(entry->opcode)) return std::nullopt;
  const std::optional<Sink> sink = check_sink(*entry);
  // guard(direct-placement): condition => !sink
  if (!sink || check_response(*entry, segment, sink->name)) return std::nullopt;
  return sink->target.from(placed_);
}

void RcRequester::placed(const rdmap::StreamSegment& segment) {
  placed_ += segment.length();
  if (segment.last) finish();
}

std::optional<TerminateCode> RcRequester::take_ready(const rdmap::StreamSegment& segment) {
  // guard(requests)
  if (!segment.last || !segment.payload.empty()) return fault::kTaggedBaseOrBounds;
  ready_ = false;
  return std::nullopt;
}

/// Nothing is written before all of this holds. The peer names the request's sink, wherever else it
/// may write. A segment of no bytes may stand anywhere, also at the end, and the memory that it
/// names is not looked at (RFC 5041 sections 5.2 and 7.1).
std::optional<TerminateCode> RcRequester::check_response(const SendEntry& entry,
                                                         const rdmap::StreamSegment& segment,
                                                         const RemoteMemory& sink) const {
  const uint64_t end = placed_ + segment.length();
  // guard(requests): condition => end > entry.length
  // guard(response-segments): && end != entry.length => != (end == entry.length)
  // guard(requests): without end > entry.length ||
  if (end > entry.length || (segment.last && end != entry.length))
    return fault::kTaggedBaseOrBounds;
  if (segment.length() == 0) return std::nullopt;  // guard(rows:zero-length-response)
  // guard(rows:response-sink-checked)
  if (segment.stag != sink.stag) return fault::kTaggedInvalidStag;
  // guard(rows:response-sink-checked)
  if (segment.tagged_offset != sink.offset + placed_) return fault::kTaggedBaseOrBounds;
  return std::nullopt;
}

std::optional<TerminateCode> RcRequester::take_atomic_response(
    const rdmap::AtomicResponse& response) {
  const SendEntry* entry = sends_.awaiting();
  // guard(requests): condition => entry == nullptr
  // guard(rows:atomic-unasked): condition => entry != nullptr && rdmap::is_read(entry->opcode)
  if (entry == nullptr || rdmap::is_read(entry->opcode)) return fault::kNoBuffer;
  if (response.request_id != answered_id_)  // guard(rows:atomic-identifier): condition => false
    return fail(WcStatus::bad_response_error, fault::kUnspecified);
  const std::optional<ddp::PlacementTarget> target = protection_.target(entry->sges);
  if (!target) return fail(WcStatus::local_protection_error, fault::kLocalCatastrophic);
  target->place(0, std::as_bytes(std::span(&response.value, 1)));
  finish();
  return std::nullopt;
}

void RcRequester::finish() {
  const SendEntry& entry = *sends_.awaiting();
  WcStatus status = WcStatus::success;
  if (rdmap::info_of(entry.opcode).invalidates_sink && entry.length != 0) {
    const ddp::RegionFault refused = protection_.invalidate(entry.sges[0].lkey);
    if (refused != ddp::RegionFault::none) status = WcStatus::window_bind_error;
  }
  placed_ = 0;
  --outstanding_;
  ++answered_id_;
  sends_.answered(status);
}

TerminateCode RcRequester::fail(WcStatus status, TerminateCode code) {
  sends_.answered(status);
  return code;
}

void RcRequester::refuse(const TerminateCode& code) {
  if (sends_.awaiting() == nullptr || code.layer != fault::kInvalidStag.layer) return;
  sends_.answered(code.type == kProtectionError ? WcStatus::remote_access_error
                                                : WcStatus::remote_operation_error);
}

}  // namespace diwarp::rnic
