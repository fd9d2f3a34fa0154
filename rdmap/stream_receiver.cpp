// SPDX-License-Identifier: Apache-2.0
#include "rdmap/stream_receiver.h"

#include "diwarp/types.h"
#include "rdmap/terminate.h"

namespace diwarp::rdmap {
namespace {

using Fault = std::optional<TerminateCode>;

/// The faults that DDP finds without knowing earlier segments (RFC 5041 section 7.1). Reserved bits
/// are not looked at (RFC 5041 section 4, RFC 5040 section 4.1).
Fault check_ddp(const ddp::Header& header) {
  // guard(rdmap): condition => false
  // guard(rows:ddp-reserved): first if (header.reserved != 0) return fault::kUnspecified;
  if (!header.tagged && header.queue_number >= kQueues) return fault::kInvalidQueueNumber;
  return {};
}

/// The faults that RDMAP finds (RFC 5040 section 7).
Fault check_rdmap(const ddp::Header& header) {
  // guard(rows:rdmap-version)
  // guard(rows:rdmap-reserved): condition => header.ulp_control >> 4 != kVersion << 2
  if (version_of(header.ulp_control) != kVersion) return fault::kInvalidVersion;
  const OpcodeInfo* info = find_opcode(opcode_of(header.ulp_control));
  // guard(datagram): without !info->on_streams ||
  // guard(rdmap): condition => info == nullptr
  // guard(rdmap): condition => info->tagged != header.tagged
  // guard(rows:unknown-opcode): condition => info != nullptr && (!info->on_streams ||
  //     info->tagged != header.tagged)
  // guard(rows:model-checked): without || info->tagged != header.tagged
  if (info == nullptr || !info->on_streams || info->tagged != header.tagged) {
    return fault::kUnexpectedOpcode;
  }
  // guard(rows:queue-checked): condition => false
  if (!header.tagged && info->queue_number != header.queue_number) {
    return fault::kInvalidQueueNumber;
  }
  return {};
}

/// A message whose length the opcode tells. A longer one does not fit into DDP's buffer; for a
/// shorter one, or one without its end, the RFCs have no code of their own.
Fault check_body(const OpcodeInfo& info, const StreamSegment& segment) {
  if (!info.one_segment || info.body_bytes == 0) return {};
  if (segment.length() > info.body_bytes) return fault::kMessageTooLong;  // guard(rdmap)
  // guard(rdmap): without segment.last &&
  const bool whole = segment.last && segment.length() == info.body_bytes;
  // guard(rdmap): whole ? Fault{} : fault::kUnspecified => {}
  return whole ? Fault{} : fault::kUnspecified;
}

StreamSegment to_segment(const ddp::Header& header, ConstBytes payload) {
  const auto opcode = static_cast<Opcode>(opcode_of(header.ulp_control));
  // guard(rows:invalidate-word): info_of(opcode).invalidates ? header.ulp_word : 0 =>
  //     header.ulp_word
  return {.opcode = opcode,
          .last = header.last,
          .invalidate_stag = info_of(opcode).invalidates ? header.ulp_word : 0,
          .msn = header.msn,
          .message_offset = header.message_offset,
          .stag = header.stag,
          .tagged_offset = header.tagged_offset,
          .payload = payload};
}

/// The header of the next ULPDU. The version comes first: it tells what the rest looks like.
Fault read_header(ConstBytes ulpdu, ddp::Header& header) {
  const std::optional<uint8_t> version = ddp::peek_version(ulpdu);
  if (!version) return fault::kUnspecified;  // guard(rdmap)
  if (*version != ddp::kVersion) {           // guard(rows:ddp-version): condition => false
    // guard(rdmap): => return fault::kUntaggedInvalidVersion;
    return ddp::peek_tagged(ulpdu) ? fault::kTaggedInvalidVersion : fault::kUntaggedInvalidVersion;
  }
  const std::optional<ddp::Header> decoded = ddp::decode(ulpdu);
  if (!decoded) return fault::kUnspecified;  // guard(rdmap)
  header = *decoded;
  return {};
}

}  // namespace

size_t encode_header(const StreamSegment& segment, Bytes out) {
  const OpcodeInfo& info = info_of(segment.opcode);
  // guard(rows:rdmap-version-sent): control_octet => static_cast<uint8_t>
  // guard(rows:rdmap-reserved): control_octet(segment.opcode) =>
  //     static_cast<uint8_t>(control_octet(segment.opcode) | 0x10)
  // guard(rows:ddp-reserved): .last = segment.last => .last = segment.last, .reserved = 1
  return ddp::encode({.tagged = info.tagged,
                      .last = segment.last,
                      .ulp_control = control_octet(segment.opcode),
                      .stag = segment.stag,
                      .tagged_offset = segment.tagged_offset,
                      // guard(rows:invalidate-word): without info.invalidates ?
                      //     segment.invalidate_stag :
                      .ulp_word = info.invalidates ? segment.invalidate_stag : 0,
                      .queue_number = info.queue_number,
                      .msn = segment.msn,
                      .message_offset = segment.message_offset},
                     out);
}

StreamReceiver::Result StreamReceiver::accept(ConstBytes ulpdu, size_t missing) {
  ddp::Header header;
  if (const Fault fault = read_header(ulpdu, header)) return {.fault = fault};
  if (const Fault fault = check_ddp(header)) return {.fault = fault};
  if (const Fault fault = check_rdmap(header)) return {.fault = fault};
  const ConstBytes payload = ulpdu.subspan(ddp::header_bytes(header.tagged));
  Result result{.fault = {}, .segment = to_segment(header, payload)};
  result.segment.missing = missing;
  const Fault fault = header.tagged ? follow_tagged(result.segment) : follow(result.segment);
  return fault ? Result{.fault = fault} : result;
}

/// The rules of a queue: MSNs count up by one, and MO goes on where the last segment ended (RFC
/// 5041 section 5.3; a stream keeps the order).
Fault StreamReceiver::follow(const StreamSegment& segment) {
  const OpcodeInfo& info = info_of(segment.opcode);
  const bool on_send_queue = info.queue_number == kSendQueue;
  const bool inside = on_send_queue && inside_send_;
  // guard(rows:msn-code): fault::kInvalidMsn => fault::kNoBuffer
  // guard(rows:msn-checked): segment.msn => segment.msn + 1
  // guard(rows:msn-repeated)
  if (segment.msn != next_msn_[info.queue_number]) return fault::kInvalidMsn;
  // guard(rows:mo-checked)
  // guard(rows:ddp-untagged-codes): fault::kInvalidOffset => fault::kInvalidMsn
  if (segment.message_offset != (inside ? next_offset_ : 0)) return fault::kInvalidOffset;
  // guard(rows:opcode-continues)
  if (inside && segment.opcode != send_opcode_) return fault::kUnexpectedOpcode;
  if (const Fault fault = check_body(info, segment)) return fault;  // guard(rows:fixed-length)
  // guard(rows:any-segment-size): first if (!segment.last && segment.length() < 100) return
  //     fault::kUnspecified;
  const uint64_t end = uint64_t{segment.message_offset} + segment.length();
  if (end > kMaxMessage) return fault::kMessageTooLong;  // guard(rows:max-message)

  // guard(rows:msn-per-message): without if (segment.last)
  if (segment.last) ++next_msn_[info.queue_number];
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
  // guard(rows:opcode-continues)
  if (inside_tagged_ && segment.opcode != tagged_opcode_) return fault::kUnexpectedOpcode;
  inside_tagged_ = !segment.last;
  tagged_opcode_ = segment.opcode;
  return {};
}

}  // namespace diwarp::rdmap
