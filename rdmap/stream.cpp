// SPDX-License-Identifier: Apache-2.0
#include "rdmap/stream.h"

#include "diwarp/types.h"
#include "rdmap/terminate.h"

namespace diwarp::rdmap {
namespace {

using Fault = std::optional<TerminateCode>;

/// What DDP finds without knowing what came before (RFC 5041 section 7.1). Reserved bits are not
/// looked at (RFC 5041 section 4, RFC 5040 section 4.1).
Fault judge_ddp(const ddp::Header& header) {
  if (!header.tagged && header.queue_number >= kQueues) return fault::kInvalidQueueNumber;
  return {};
}

/// What RDMAP finds (RFC 5040 section 7).
Fault judge_rdmap(const ddp::Header& header) {
  if (version_of(header.ulp_control) != kVersion) return fault::kInvalidVersion;
  const OpcodeFacts* facts = find_opcode(opcode_of(header.ulp_control));
  if (facts == nullptr || !facts->on_streams || facts->tagged != header.tagged) {
    return fault::kUnexpectedOpcode;
  }
  if (!header.tagged && facts->queue_number != header.queue_number) {
    return fault::kInvalidQueueNumber;
  }
  return {};
}

/// A message whose length the opcode tells. What is longer does not fit into DDP's buffer; for what
/// is shorter, or not the end, the RFCs have no code of their own.
Fault judge_body(const OpcodeFacts& facts, const StreamSegment& segment) {
  if (!facts.one_segment || facts.body_bytes == 0) return {};
  if (segment.length() > facts.body_bytes) return fault::kMessageTooLong;
  const bool whole = segment.last && segment.length() == facts.body_bytes;
  return whole ? Fault{} : fault::kUnspecified;
}

StreamSegment to_segment(const ddp::Header& header, ConstBytes payload) {
  const auto opcode = static_cast<Opcode>(opcode_of(header.ulp_control));
  return {.opcode = opcode,
          .last = header.last,
          .invalidate_stag = facts_of(opcode).invalidates ? header.ulp_word : 0,
          .msn = header.msn,
          .message_offset = header.message_offset,
          .stag = header.stag,
          .tagged_offset = header.tagged_offset,
          .payload = payload};
}

/// The header of the next ULPDU. The version comes first: it tells what the rest looks like.
Fault read_header(ConstBytes ulpdu, ddp::Header& header) {
  const std::optional<uint8_t> version = ddp::peek_version(ulpdu);
  if (!version) return fault::kUnspecified;
  if (*version != ddp::kVersion) {
    return ddp::peek_tagged(ulpdu) ? fault::kTaggedInvalidVersion : fault::kUntaggedInvalidVersion;
  }
  const std::optional<ddp::Header> decoded = ddp::decode(ulpdu);
  if (!decoded) return fault::kUnspecified;
  header = *decoded;
  return {};
}

}  // namespace

size_t encode_header(const StreamSegment& segment, Bytes out) {
  const OpcodeFacts& facts = facts_of(segment.opcode);
  return ddp::encode({.tagged = facts.tagged,
                      .last = segment.last,
                      .ulp_control = control_octet(segment.opcode),
                      .stag = segment.stag,
                      .tagged_offset = segment.tagged_offset,
                      .ulp_word = facts.invalidates ? segment.invalidate_stag : 0,
                      .queue_number = facts.queue_number,
                      .msn = segment.msn,
                      .message_offset = segment.message_offset},
                     out);
}

StreamReceiver::Result StreamReceiver::accept(ConstBytes ulpdu, size_t missing) {
  ddp::Header header;
  if (const Fault fault = read_header(ulpdu, header)) return {.fault = fault};
  if (const Fault fault = judge_ddp(header)) return {.fault = fault};
  if (const Fault fault = judge_rdmap(header)) return {.fault = fault};
  const ConstBytes payload = ulpdu.subspan(ddp::header_bytes(header.tagged));
  Result result{.fault = {}, .segment = to_segment(header, payload)};
  result.segment.missing = missing;
  const Fault fault = header.tagged ? follow_tagged(result.segment) : follow(result.segment);
  return fault ? Result{.fault = fault} : result;
}

/// The rules of a queue: MSNs count up by one, and MO goes on where the last segment ended (RFC
/// 5041 section 5.3; a stream keeps the order).
Fault StreamReceiver::follow(const StreamSegment& segment) {
  const OpcodeFacts& facts = facts_of(segment.opcode);
  const bool on_send_queue = facts.queue_number == kSendQueue;
  const bool inside = on_send_queue && inside_send_;
  if (segment.msn != next_msn_[facts.queue_number]) return fault::kInvalidMsn;
  if (segment.message_offset != (inside ? next_offset_ : 0)) return fault::kInvalidOffset;
  if (inside && segment.opcode != send_opcode_) return fault::kUnexpectedOpcode;
  if (const Fault fault = judge_body(facts, segment)) return fault;
  const uint64_t end = uint64_t{segment.message_offset} + segment.length();
  if (end > kMaxMessage) return fault::kMessageTooLong;

  if (segment.last) ++next_msn_[facts.queue_number];
  if (on_send_queue) {
    inside_send_ = !segment.last;
    send_opcode_ = segment.opcode;
    next_offset_ = static_cast<uint32_t>(end);
  }
  return {};
}

/// A tagged message is not cut by another one. An untagged one may come in between: DDP's two
/// models are independent of each other, and a Terminate must get through.
Fault StreamReceiver::follow_tagged(const StreamSegment& segment) {
  if (inside_tagged_ && segment.opcode != tagged_opcode_) return fault::kUnexpectedOpcode;
  inside_tagged_ = !segment.last;
  tagged_opcode_ = segment.opcode;
  return {};
}

}  // namespace diwarp::rdmap
