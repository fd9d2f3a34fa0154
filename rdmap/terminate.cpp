// SPDX-License-Identifier: Apache-2.0
#include "rdmap/terminate.h"

#include <cassert>
#include <cstring>
#include <limits>

#include "base/byte_order.h"
#include "ddp/header.h"
#include "rdmap/opcodes.h"
#include "rdmap/stream_receiver.h"

namespace diwarp::rdmap {
namespace {

// The control field: layer (4 bits) and type (4), code (8), header control (3), reserved (13).
constexpr size_t kControlBytes = 4;
constexpr size_t kCodeAt = 1;
constexpr size_t kHeadersAt = 2;
constexpr uint8_t kLengthValid = 0x80;    // M
constexpr uint8_t kDdpIncluded = 0x40;    // D
constexpr uint8_t kRdmapIncluded = 0x20;  // R
constexpr size_t kSegmentLengthBytes = 2;

constexpr uint8_t kLayerRdmap = 0;
constexpr uint8_t kLayerDdp = 1;

/// Whether a Terminate with this code names the segment (RFC 5040 section 4.8, figure 10). It does
/// not where no segment is to blame, nor where the layout of its header is not known.
bool names_segment(const TerminateCode& code) {
  // guard(rows:terminate-names-segment): != fault::kLocalCatastrophic.type => ==
  //     fault::kInvalidStag.type
  if (code.layer == kLayerRdmap) return code.type != fault::kLocalCatastrophic.type;
  return code.layer == kLayerDdp && code.type != fault::kDdpCatastrophic.type &&
         code != fault::kTaggedInvalidVersion && code != fault::kUntaggedInvalidVersion;
}

/// Bytes of the RDMAP header behind a DDP header: only requests have one.
size_t rdmap_header_bytes(const ddp::Header& header) {
  const OpcodeInfo* info = find_opcode(opcode_of(header.ulp_control));
  if (header.tagged || info == nullptr || info->queue_number != kRequestQueue) return 0;
  // guard(rows:terminate-atomic-header): => return info->opcode == Opcode::atomic_request ? 0 :
  //     info->body_bytes;
  return info->body_bytes;
}

/// How much of the offending segment goes into the Terminate.
struct Extract {
  uint8_t flags = 0;
  size_t bytes = 0;
};

Extract extract(const TerminateCode& code, ConstBytes offending) {
  if (!names_segment(code)) return {};  // guard(rdmap)
  const std::optional<ddp::Header> header = ddp::decode(offending);
  if (!header) return {};  // guard(rdmap)
  const size_t ddp_bytes = ddp::header_bytes(header->tagged);
  // guard(rows:terminate-rdmap-header): => const size_t rdmap_bytes = rdmap_header_bytes(*header);
  // guard(rows:terminate-rdmap-header): => const size_t rdmap_bytes = 0;
  const size_t rdmap_bytes = code.layer == kLayerRdmap ? rdmap_header_bytes(*header) : 0;
  // guard(rdmap): condition => rdmap_bytes == 0
  if (rdmap_bytes == 0 || offending.size() < ddp_bytes + rdmap_bytes) {
    // guard(rows:terminate-ddp-header): without | kDdpIncluded
    return {.flags = kLengthValid | kDdpIncluded, .bytes = ddp_bytes};
  }
  return {.flags = kLengthValid | kDdpIncluded | kRdmapIncluded, .bytes = ddp_bytes + rdmap_bytes};
}

}  // namespace

TerminateCode remote_protection_fault(ddp::RegionFault found) {
  switch (found) {
    case ddp::RegionFault::wrong_domain:
    case ddp::RegionFault::wrong_queue_pair:
      return fault::kStagNotAssociated;
    case ddp::RegionFault::access:
      return fault::kAccessRights;
    // guard(rows:read-codes): => return fault::kAccessRights;
    case ddp::RegionFault::bounds:
      return fault::kBaseOrBounds;
    case ddp::RegionFault::wrap:
      return fault::kOffsetWrap;
    default:
      return fault::kInvalidStag;
  }
}

TerminateCode tagged_fault(ddp::RegionFault found) {
  switch (found) {
    case ddp::RegionFault::wrong_domain:
    case ddp::RegionFault::wrong_queue_pair:
      return fault::kTaggedNotAssociated;
    case ddp::RegionFault::access:
      return fault::kAccessRights;
    // guard(rows:ddp-tagged-codes): => return fault::kTaggedNotAssociated;
    case ddp::RegionFault::bounds:
      return fault::kTaggedBaseOrBounds;
    case ddp::RegionFault::wrap:
      return fault::kTaggedOffsetWrap;
    default:
      return fault::kTaggedInvalidStag;
  }
}

size_t encode_terminate(TerminateCode code, ConstBytes offending, Bytes out, size_t segment_bytes) {
  assert(out.size() >= kMaxTerminateUlpdu);
  assert(segment_bytes == 0 || segment_bytes >= offending.size());
  // guard(rows:terminate-msn): 1 => 2
  size_t at = encode_header({.opcode = Opcode::terminate, .msn = 1}, out);
  const Extract headers = extract(code, offending);
  // guard(rows:terminate-control): => out[at] = static_cast<std::byte>((code.type & 0x0F) << 4 |
  //     (code.layer & 0x0F));
  out[at] = static_cast<std::byte>((code.layer & 0x0F) << 4 | (code.type & 0x0F));
  out[at + kCodeAt] = std::byte{code.code};
  out[at + kHeadersAt] = std::byte{headers.flags};
  out[at + kHeadersAt + 1] = std::byte{0};
  at += kControlBytes;
  if (headers.bytes == 0) return at;

  const size_t length = segment_bytes != 0 ? segment_bytes : offending.size();
  assert(length <= std::numeric_limits<uint16_t>::max());
  // guard(rows:terminate-length): length => length - headers.bytes
  store_be(out.data() + at, static_cast<uint16_t>(length));
  at += kSegmentLengthBytes;
  std::memcpy(out.data() + at, offending.data(), headers.bytes);
  return at + headers.bytes;
}

std::optional<Terminate> parse_terminate(ConstBytes payload) {
  if (payload.size() < kControlBytes) return std::nullopt;  // guard(rdmap)
  const auto origin = std::to_integer<uint8_t>(payload[0]);
  const auto flags = std::to_integer<uint8_t>(payload[kHeadersAt]);
  Terminate terminate{.code = {.layer = static_cast<uint8_t>(origin >> 4),
                               .type = static_cast<uint8_t>(origin & 0x0F),
                               .code = std::to_integer<uint8_t>(payload[kCodeAt])},
                      .ddp_header = {},
                      .rdmap_header = {}};
  if ((flags & kDdpIncluded) == 0) return terminate;

  if (payload.size() < kControlBytes + kSegmentLengthBytes) return std::nullopt;  // guard(rdmap)
  const ConstBytes rest = payload.subspan(kControlBytes + kSegmentLengthBytes);
  const std::optional<ddp::Header> header = ddp::decode(rest);
  if (!header) return std::nullopt;  // guard(rdmap)
  const size_t ddp_bytes = ddp::header_bytes(header->tagged);
  terminate.ddp_header = rest.first(ddp_bytes);
  if ((flags & kRdmapIncluded) == 0) return terminate;

  // Some peers set R for segments that have no RDMAP header.
  const size_t rdmap_bytes = rdmap_header_bytes(*header);
  if (rest.size() < ddp_bytes + rdmap_bytes) return std::nullopt;  // guard(rdmap)
  terminate.rdmap_header = rest.subspan(ddp_bytes, rdmap_bytes);
  return terminate;
}

}  // namespace diwarp::rdmap
