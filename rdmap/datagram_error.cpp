// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <optional>

#include "base/byte_order.h"
#include "rdmap/datagram.h"

namespace diwarp::rdmap {
namespace {

// An Error's first word is the Terminate control field of RFC 5040 section 4.8: layer (4 bits) and
// type (4), code (8), which headers are there (3), reserved (13). The rest of that field, the DDP
// segment length, and the headers follow where the bits say so.
constexpr size_t kCodeAt = 1;
constexpr size_t kHeadersAt = 2;
constexpr size_t kErrorWordBytes = 4;
constexpr size_t kLengthBytes = 2;
constexpr uint16_t kLengthValid = 0x8000;    // M
constexpr uint16_t kDdpIncluded = 0x4000;    // D
constexpr uint16_t kRdmapIncluded = 0x2000;  // R
constexpr uint16_t kNothingIncluded = 0;
constexpr uint16_t kIncludedMask = kLengthValid | kDdpIncluded | kRdmapIncluded;

/// Why a message is dropped, or nothing.
using Fault = std::optional<Counter>;

/// Which headers an Error tells of, as its bits and in bytes.
struct Extract {
  uint16_t bits = kNothingIncluded;
  size_t bytes = 0;

  size_t error_bytes() const { return kErrorWordBytes + (bytes == 0 ? 0 : kLengthBytes + bytes); }
};

/// As much of `headers` as lets the Error have at most `room` bytes.
Extract extract(ConstBytes headers, size_t room) {
  if (headers.empty()) return {};
  const size_t ddp_bytes = ddp::header_bytes(ddp::peek_tagged(headers));
  assert(headers.size() >= ddp_bytes);
  const Extract ddp_alone{.bits = kLengthValid | kDdpIncluded, .bytes = ddp_bytes};
  const Extract all{.bits = kIncludedMask, .bytes = headers.size()};
  // guard(datagram): without && all.error_bytes() <= room
  if (headers.size() > ddp_bytes && all.error_bytes() <= room) return all;
  // guard(datagram): => return ddp_alone;
  return ddp_alone.error_bytes() <= room ? ddp_alone : Extract{};
}

/// Bytes of all headers of a segment that begins like this: so many, once its opcode is known.
size_t all_header_bytes(ConstBytes headers) {
  const ddp::Header header = *ddp::decode(headers);
  const OpcodeInfo* info = find_opcode(opcode_of(header.ulp_control));
  const bool known = info != nullptr && info->tagged == header.tagged;
  return known ? segment_header_bytes(info->opcode, false) : ddp::header_bytes(header.tagged);
}

/// The bits must tell exactly what is there: nothing, the DDP header, or what follows it as well.
Fault check_included(uint16_t bits, ConstBytes rest) {
  // guard(datagram): rest.empty() ? Fault{} : Counter::drop_control => Fault{}
  if (bits == kNothingIncluded) return rest.empty() ? Fault{} : Counter::drop_control;
  // guard(datagram): bits != kIncludedMask => false
  if (bits != (kLengthValid | kDdpIncluded) && bits != kIncludedMask) return Counter::drop_control;
  if (rest.size() < kLengthBytes) return Counter::drop_truncated;  // guard(datagram)
  const ConstBytes headers = rest.subspan(kLengthBytes);
  const size_t ddp_bytes = ddp::header_bytes(ddp::peek_tagged(headers));
  if (headers.size() < ddp_bytes) return Counter::drop_truncated;  // guard(datagram)
  const bool all = (bits & kRdmapIncluded) != 0;
  if (all != (headers.size() > ddp_bytes)) return Counter::drop_control;  // guard(datagram)
  // guard(datagram)
  if (all && headers.size() != all_header_bytes(headers)) return Counter::drop_control;
  const bool fits = headers.size() <= load_be<uint16_t>(rest.data());
  // guard(datagram): fits ? Fault{} : Counter::drop_control => {}
  return fits ? Fault{} : Counter::drop_control;
}

}  // namespace

size_t encode_error(const ErrorReport& error, size_t room, Bytes out) {
  const Extract included = extract(error.headers, room);
  if (included.error_bytes() > room) return 0;  // guard(datagram)
  assert(out.size() >= included.error_bytes());
  out[0] = static_cast<std::byte>((error.code.layer & 0x0F) << 4 | (error.code.type & 0x0F));
  out[kCodeAt] = std::byte{error.code.code};
  store_be(out.data() + kHeadersAt, included.bits);
  if (included.bytes == 0) return kErrorWordBytes;

  const size_t length = std::max(error.segment_bytes, error.headers.size());
  assert(length <= std::numeric_limits<uint16_t>::max());
  store_be(out.data() + kErrorWordBytes, static_cast<uint16_t>(length));
  std::memcpy(out.data() + kErrorWordBytes + kLengthBytes, error.headers.data(), included.bytes);
  return included.error_bytes();
}

ParsedError parse_error(ConstBytes rest) {
  const auto dropped = [](Counter reason) { return ParsedError{.drop_reason = reason}; };
  if (rest.size() < kErrorWordBytes) return dropped(Counter::drop_truncated);  // guard(datagram)
  const auto bits = load_be<uint16_t>(rest.data() + kHeadersAt);
  if ((bits & ~kIncludedMask) != 0) return dropped(Counter::drop_reserved);  // guard(datagram)
  const ConstBytes included = rest.subspan(kErrorWordBytes);
  // guard(datagram)
  if (const Fault fault = check_included(bits, included)) return dropped(*fault);
  const auto origin = std::to_integer<uint8_t>(rest[0]);
  ParsedError parsed{.valid = true};
  parsed.error.code = {.layer = static_cast<uint8_t>(origin >> 4),
                       .type = static_cast<uint8_t>(origin & 0x0F),
                       .code = std::to_integer<uint8_t>(rest[kCodeAt])};
  if (included.empty()) return parsed;
  parsed.error.headers = included.subspan(kLengthBytes);
  parsed.error.segment_bytes = load_be<uint16_t>(included.data());
  return parsed;
}

ErrorReport report_of(TerminateCode code, const DatagramSegment& segment) {
  return {.code = code,
          .headers = segment.headers,
          .segment_bytes = segment.headers.size() + segment.payload.size()};
}

}  // namespace diwarp::rdmap
