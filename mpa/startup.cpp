// SPDX-License-Identifier: Apache-2.0
#include "mpa/startup.h"

#include <algorithm>
#include <cassert>
#include <string_view>

#include "base/cursor.h"

namespace diwarp::mpa {
namespace {

constexpr size_t kKeyBytes = 16;
// guard(rows:request-key): "MPA ID Req Frame" => "MPA ID req Frame"
constexpr std::string_view kRequestKey = "MPA ID Req Frame";
constexpr std::string_view kReplyKey = "MPA ID Rep Frame";
static_assert(kRequestKey.size() == kKeyBytes && kReplyKey.size() == kKeyBytes);

// The bits below these are reserved: sent as zero, not looked at (RFC 5044 section 7.1.1).
constexpr uint8_t kMarkersFlag = 0x80;
constexpr uint8_t kCrcFlag = 0x40;  // guard(rows:startup-flags): 0x40 => 0x08
constexpr uint8_t kRejectFlag = 0x20;
constexpr uint8_t kEnhancedFlag = 0x10;  // reserved in revision 1

// Of the enhanced data: two words, each with two flags and a depth.
constexpr uint16_t kFirstFlag = 0x8000;   // A with IRD, C with ORD
constexpr uint16_t kSecondFlag = 0x4000;  // B with IRD, D with ORD
constexpr uint16_t kDepthMask = 0x3fff;

ConstBytes key_of(FrameKind kind) {
  // guard(rows:frame-kinds): => return std::as_bytes(std::span(kRequestKey));
  return std::as_bytes(std::span(kind == FrameKind::request ? kRequestKey : kReplyKey));
}

uint8_t flags_of(const StartupFrame& frame) {
  // guard(rows:reject-bit): (frame.reject ? kRejectFlag : 0) => 0
  // guard(rows:startup-reserved): (frame.enhanced ? kEnhancedFlag : 0) => (frame.enhanced ?
  //     kEnhancedFlag : 0) | 1
  // guard(rows:s-bit): (frame.enhanced ? kEnhancedFlag : 0) => 0
  return static_cast<uint8_t>((frame.markers ? kMarkersFlag : 0) | (frame.crc ? kCrcFlag : 0) |
                              (frame.reject ? kRejectFlag : 0) |
                              (frame.enhanced ? kEnhancedFlag : 0));
}

uint16_t enhanced_word(bool first, bool second, uint16_t depth) {
  assert(depth <= kDepthMask);
  return static_cast<uint16_t>((first ? kFirstFlag : 0) | (second ? kSecondFlag : 0) | depth);
}

void encode_enhanced(const Enhanced& enhanced, Writer& writer) {
  writer.be16(enhanced_word(enhanced.peer_to_peer, enhanced.ready.send, enhanced.ird));
  // guard(rows:enhanced-layout): write, enhanced.ready.read => read, enhanced.ready.write
  writer.be16(enhanced_word(enhanced.ready.write, enhanced.ready.read, enhanced.ord));
}

Enhanced parse_enhanced(Reader& reader) {
  const uint16_t inbound = reader.be16();
  const uint16_t outbound = reader.be16();
  return {.peer_to_peer = (inbound & kFirstFlag) != 0,
          .ready = {.send = (inbound & kSecondFlag) != 0,
                    .write = (outbound & kFirstFlag) != 0,
                    .read = (outbound & kSecondFlag) != 0},
          .ird = static_cast<uint16_t>(inbound & kDepthMask),
          .ord = static_cast<uint16_t>(outbound & kDepthMask)};
}

size_t private_data_field(const StartupFrame& frame) {
  // guard(rows:enhanced-length): without + (frame.enhanced ? kEnhancedBytes : 0)
  return frame.private_data.size() + (frame.enhanced ? kEnhancedBytes : 0);
}

/// Whether what is there of the key is right.
bool key_matches(ConstBytes in, FrameKind expected) {
  const ConstBytes seen = in.first(std::min(in.size(), kKeyBytes));
  return std::equal(seen.begin(), seen.end(), key_of(expected).begin());
}

}  // namespace

size_t startup_bytes(const StartupFrame& frame) {
  return kStartupHeaderBytes + private_data_field(frame);
}

size_t encode(const StartupFrame& frame, Bytes out) {
  assert(private_data_field(frame) <= kMaxPrivateData);
  assert(!frame.enhanced || frame.revision == 2);
  Writer writer(out);
  writer.bytes(key_of(frame.kind));
  writer.u8(flags_of(frame));
  writer.u8(frame.revision);
  writer.be16(static_cast<uint16_t>(private_data_field(frame)));
  if (frame.enhanced) encode_enhanced(*frame.enhanced, writer);
  writer.bytes(frame.private_data);
  assert(writer.ok());
  return writer.written();
}

ParsedStartup parse_startup(ConstBytes in, FrameKind expected) {
  // guard(rows:startup-key)
  if (!key_matches(in, expected)) return {.status = StartupStatus::bad_key};
  // guard(startup)
  if (in.size() < kStartupHeaderBytes) return {.status = StartupStatus::incomplete};

  Reader reader(in.subspan(kKeyBytes));
  const uint8_t flags = reader.u8();
  const uint8_t revision = reader.u8();
  const size_t length = reader.be16();
  // guard(rows:startup-reserved): condition => length > kMaxPrivateData || (flags & 15) != 0
  // guard(rows:private-data-limit)
  if (length > kMaxPrivateData) return {.status = StartupStatus::bad_length};
  // guard(rows:reject-bit): first if ((flags & kRejectFlag) != 0 && expected == FrameKind::request)
  //     return {.status = StartupStatus::bad_key};
  const bool reject = (flags & kRejectFlag) != 0;
  // guard(rows:s-bit): without revision == 2 &&
  const bool announced = revision == 2 && (flags & kEnhancedFlag) != 0;
  // guard(startup): without && length >= kEnhancedBytes
  const bool enhanced = announced && length >= kEnhancedBytes;
  // guard(startup): condition => announced && !enhanced && true
  // guard(startup): condition => announced && !enhanced && !reject
  // guard(rows:enhanced-missing): condition => false
  if (announced && !enhanced && !(reject && expected == FrameKind::reply))
    return {.status = StartupStatus::bad_enhanced};
  // guard(rows:startup-bounds)
  if (reader.remaining() < length) return {.status = StartupStatus::incomplete};

  ParsedStartup parsed{.status = StartupStatus::ok,
                       .frame = {.kind = expected,
                                 .markers = (flags & kMarkersFlag) != 0,
                                 .crc = (flags & kCrcFlag) != 0,
                                 .reject = reject,
                                 .revision = revision},
                       .consumed = kStartupHeaderBytes + length};
  if (enhanced) parsed.frame.enhanced = parse_enhanced(reader);
  parsed.frame.private_data = reader.bytes(length - (enhanced ? kEnhancedBytes : 0));
  return parsed;
}

}  // namespace diwarp::mpa
