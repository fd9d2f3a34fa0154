// SPDX-License-Identifier: Apache-2.0
#include "mpa/startup.h"

#include <algorithm>
#include <cassert>
#include <string_view>

#include "base/cursor.h"

namespace diwarp::mpa {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
static_assert(kRequestKey.size() == kKeyBytes && kReplyKey.size() == kKeyBytes);

// The five bits below these are reserved: sent as zero, not looked at (RFC 5044 section 7.1.1).
constexpr uint8_t kMarkersFlag = 0x80;
constexpr uint8_t kCrcFlag = 0x40;
constexpr uint8_t kRejectFlag = 0x20;

ConstBytes key_of(FrameKind kind) {
  return std::as_bytes(std::span(kind == FrameKind::request ? kRequestKey : kReplyKey));
}

uint8_t flags_of(const StartupFrame& frame) {
  return static_cast<uint8_t>((frame.markers ? kMarkersFlag : 0) | (frame.crc ? kCrcFlag : 0) |
                              (frame.reject ? kRejectFlag : 0));
}

/// Whether what is there of the key is right.
bool key_matches(ConstBytes in, FrameKind expected) {
  const ConstBytes seen = in.first(std::min(in.size(), kKeyBytes));
  return std::equal(seen.begin(), seen.end(), key_of(expected).begin());
}

AgreementFault fault_of(const StartupFrame& frame) {
  if (frame.revision != kRevision) return AgreementFault::revision;
  if (frame.kind == FrameKind::reply && frame.reject) return AgreementFault::rejected;
  return frame.markers ? AgreementFault::markers : AgreementFault::none;
}

AgreementResult judge(const StartupFrame& frame, bool local_crc) {
  return {.fault = fault_of(frame), .agreement = {.crc = frame.crc || local_crc}};
}

}  // namespace

size_t encode(const StartupFrame& frame, Bytes out) {
  assert(frame.private_data.size() <= kMaxPrivateData);
  Writer writer(out);
  writer.bytes(key_of(frame.kind));
  writer.u8(flags_of(frame));
  writer.u8(frame.revision);
  writer.be16(static_cast<uint16_t>(frame.private_data.size()));
  writer.bytes(frame.private_data);
  assert(writer.ok());
  return writer.written();
}

ParsedStartup parse_startup(ConstBytes in, FrameKind expected) {
  if (!key_matches(in, expected)) return {.status = StartupStatus::bad_key};
  if (in.size() < kStartupHeaderBytes) return {.status = StartupStatus::incomplete};

  Reader reader(in.subspan(kKeyBytes));
  const uint8_t flags = reader.u8();
  const uint8_t revision = reader.u8();
  const size_t length = reader.be16();
  if (length > kMaxPrivateData) return {.status = StartupStatus::bad_length};
  if (reader.remaining() < length) return {.status = StartupStatus::incomplete};

  return {.status = StartupStatus::ok,
          .frame = {.kind = expected,
                    .markers = (flags & kMarkersFlag) != 0,
                    .crc = (flags & kCrcFlag) != 0,
                    .reject = (flags & kRejectFlag) != 0,
                    .revision = revision,
                    .private_data = reader.bytes(length)},
          .consumed = kStartupHeaderBytes + length};
}

AgreementResult judge_request(const StartupFrame& request, bool local_crc) {
  assert(request.kind == FrameKind::request);
  return judge(request, local_crc);
}

AgreementResult judge_reply(const StartupFrame& reply, bool local_crc) {
  assert(reply.kind == FrameKind::reply);
  return judge(reply, local_crc);
}

}  // namespace diwarp::mpa
