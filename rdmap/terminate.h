// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/stag_table.h"
#include "diwarp/attributes.h"

/// Terminate messages (RFC 5040 section 4.8). A fault of a stream is the code that its Terminate
/// carries.
namespace diwarp::rdmap {

/// The codes of RFC 5040 section 4.8, RFC 5041 section 7.2, RFC 5044 section 8, RFC 6581 section 8.
namespace fault {
// RDMAP
inline constexpr TerminateCode kLocalCatastrophic{0, 0, 0};
inline constexpr TerminateCode kInvalidStag{0, 1, 0};
inline constexpr TerminateCode kBaseOrBounds{0, 1, 1};
inline constexpr TerminateCode kAccessRights{0, 1, 2};
inline constexpr TerminateCode kStagNotAssociated{0, 1, 3};
inline constexpr TerminateCode kOffsetWrap{0, 1, 4};
inline constexpr TerminateCode kStagNotInvalidated{0, 1, 9};
inline constexpr TerminateCode kInvalidVersion{0, 2, 5};
inline constexpr TerminateCode kUnexpectedOpcode{0, 2, 6};
inline constexpr TerminateCode kStreamCatastrophic{0, 2, 7};
inline constexpr TerminateCode kUnspecified{0, 2, 0xff};
// DDP
inline constexpr TerminateCode kDdpCatastrophic{1, 0, 0};
inline constexpr TerminateCode kTaggedInvalidStag{1, 1, 0};
inline constexpr TerminateCode kTaggedBaseOrBounds{1, 1, 1};
inline constexpr TerminateCode kTaggedNotAssociated{1, 1, 2};
inline constexpr TerminateCode kTaggedOffsetWrap{1, 1, 3};
inline constexpr TerminateCode kTaggedInvalidVersion{1, 1, 4};
inline constexpr TerminateCode kInvalidQueueNumber{1, 2, 1};
inline constexpr TerminateCode kNoBuffer{1, 2, 2};
inline constexpr TerminateCode kInvalidMsn{1, 2, 3};
inline constexpr TerminateCode kInvalidOffset{1, 2, 4};
inline constexpr TerminateCode kMessageTooLong{1, 2, 5};
inline constexpr TerminateCode kUntaggedInvalidVersion{1, 2, 6};
// MPA
inline constexpr TerminateCode kStreamLost{2, 0, 1};
inline constexpr TerminateCode kBadCrc{2, 0, 2};
inline constexpr TerminateCode kBadMarker{2, 0, 3};
inline constexpr TerminateCode kBadStartup{2, 0, 4};
inline constexpr TerminateCode kMpaCatastrophic{2, 0, 5};
inline constexpr TerminateCode kInsufficientIrd{2, 0, 6};
inline constexpr TerminateCode kNoMatchingReady{2, 0, 7};
}  // namespace fault

/// A code as the first word of a Terminate has it (RFC 5040 section 4.8): layer (4 bits), type (4),
/// error code (8), 16 zero bits. And back; the other bits of the word are not looked at.
constexpr uint32_t to_word(const TerminateCode& code) {
  return uint32_t{code.layer} << 28 | (code.type & uint32_t{15}) << 24 | uint32_t{code.code} << 16;
}
constexpr TerminateCode terminate_code(uint32_t word) {
  return {static_cast<uint8_t>(word >> 28), static_cast<uint8_t>(word >> 24 & 15),
          static_cast<uint8_t>(word >> 16)};
}

/// The code of a fault in naming memory, which is not RegionFault::none: in a request to read or
/// change memory, RDMAP's Remote Protection Error (RFC 5040 section 4.8); in a tagged segment,
/// DDP's Tagged Buffer Error (RFC 5041 section 7.2), but access rights are RDMAP's there too.
TerminateCode remote_protection_fault(ddp::RegionFault found);
TerminateCode tagged_fault(ddp::RegionFault found);

/// A Terminate as it came.
struct Terminate {
  TerminateCode code;
  ConstBytes ddp_header;  ///< of the offending segment; empty: not there
  ConstBytes
      rdmap_header;  ///< of an offending request, what follows its DDP header; empty: not there
};

/// The longest Terminate ULPDU.
inline constexpr size_t kMaxTerminateUlpdu = 18 + 4 + 2 + 18 + 52;

/// Writes the ULPDU of a Terminate: DDP header, control, and as much of the offending segment's
/// headers as RFC 5040 section 4.8 asks for with this code. `offending` is the ULPDU, or its
/// beginning; empty: there is none. `segment_bytes` is the length of the whole ULPDU where only its
/// beginning is there. Returns bytes written, at most kMaxTerminateUlpdu, for which `out` has room.
size_t encode_terminate(TerminateCode code, ConstBytes offending, Bytes out,
                        size_t segment_bytes = 0);

/// Reads the payload of a Terminate segment. Nothing if it is too short for what it announces.
std::optional<Terminate> parse_terminate(ConstBytes payload);

}  // namespace diwarp::rdmap
