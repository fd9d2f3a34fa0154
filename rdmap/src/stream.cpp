// SPDX-License-Identifier: Apache-2.0
#include "rdmap/stream.h"

#include <optional>

#include "diwarp/types.h"

namespace diwarp::rdmap {
namespace {

StreamReceiver::Result failed(StreamFault fault) { return {.fault = fault}; }

/// Everything that can be judged without knowing what came before. Reserved bits are not looked at
/// (RFC 5041 section 4, RFC 5040 section 4.1).
StreamFault judge_header(const ddp::Header& header) {
  if (header.version != ddp::kVersion) return StreamFault::ddp_version;
  if (version_of(header.ulp_control) != kVersion) return StreamFault::rdmap_version;
  const OpcodeFacts* facts = find_opcode(opcode_of(header.ulp_control));
  if (facts == nullptr || facts->tagged != header.tagged) return StreamFault::opcode;
  if (facts->queue_number != header.queue_number) return StreamFault::queue_number;
  return facts->opcode == Opcode::terminate ? StreamFault::terminated : StreamFault::none;
}

}  // namespace

size_t encode_send_header(const StreamSegment& segment, Bytes out) {
  const Opcode opcode = segment.solicited ? Opcode::send_solicited : Opcode::send;
  return ddp::encode({.last = segment.last,
                      .ulp_control = control_octet(opcode),
                      .queue_number = 0,
                      .msn = segment.msn,
                      .message_offset = segment.message_offset},
                     out);
}

StreamReceiver::Result StreamReceiver::accept(ConstBytes ulpdu) {
  const std::optional<ddp::Header> header = ddp::decode(ulpdu);
  if (!header) return failed(StreamFault::truncated);
  if (const StreamFault fault = judge_header(*header); fault != StreamFault::none) {
    return failed(fault);
  }
  const Result result{
      .segment = {.solicited = find_opcode(opcode_of(header->ulp_control))->solicited,
                  .last = header->last,
                  .msn = header->msn,
                  .message_offset = header->message_offset,
                  .payload = ulpdu.subspan(ddp::kUntaggedHeaderBytes)}};
  const StreamFault fault = follow(result.segment);
  return fault == StreamFault::none ? result : failed(fault);
}

StreamFault StreamReceiver::follow(const StreamSegment& segment) {
  if (segment.msn != next_msn_) return StreamFault::msn;
  if (segment.message_offset != next_offset_) return StreamFault::message_offset;
  if (inside_ && segment.solicited != solicited_) return StreamFault::opcode;
  const uint64_t end = uint64_t{segment.message_offset} + segment.payload.size();
  if (end > kMaxMessage) return StreamFault::too_long;

  inside_ = !segment.last;
  solicited_ = segment.solicited;
  next_offset_ = segment.last ? 0 : static_cast<uint32_t>(end);
  if (segment.last) ++next_msn_;
  return StreamFault::none;
}

}  // namespace diwarp::rdmap
