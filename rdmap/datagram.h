// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/counters.h"
#include "ddp/header.h"
#include "ddp/segmentation.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rdmap/bodies.h"
#include "rdmap/opcodes.h"

/// Segments over datagrams (docs/wire-format.md): the bytes between the envelope of a datagram, or
/// its RD header, and the CRC.
///
///   immediate (8, if flagged) | DDP and RDMAP header | payload
namespace diwarp::rdmap {

inline constexpr uint8_t kImmediateFlag = 1;
inline constexpr uint8_t kSolicitedFlag = 2;

inline constexpr size_t kRecordExtensionBytes = 12;  // MSN, MO, message length
/// The most that one Read Request asks for; longer Reads are several.
inline constexpr uint32_t kMaxReadRequest = uint32_t{256} << 10;

// --- Segments (classes UD and RD).

/// One segment of a message over datagrams, in host order. Which fields mean something depends on
/// the opcode: Sends have q_key (with invalidate: invalidate_stag), MSN and MO; Read Requests MSN,
/// `nonce` and `request`; Read Responses STag and TO; Write-Records STag, TO, MSN, MO and
/// message_length.
struct DatagramSegment {
  Opcode opcode = Opcode::send;
  bool last = false;
  bool has_immediate = false;
  uint64_t immediate = 0;  ///< Sends and Write-Records
  uint32_t q_key = 0;
  STag invalidate_stag = 0;
  uint32_t nonce = 0;  ///< the requester's, which an Error repeats
  uint32_t msn = 0;
  uint32_t message_offset = 0;
  STag stag = 0;
  uint64_t tagged_offset = 0;
  uint32_t message_length = 0;
  bool record_solicited = false;  ///< Write-Records
  ReadRequest request = {};       ///< as RFC 5040 section 4.4 has it
  ConstBytes payload = {};
  ConstBytes headers = {};  ///< parsed: DDP header and all up to the payload, for Errors

  /// Sends have opcodes for it; for a Write-Record the flag alone tells.
  bool solicited() const { return record_solicited || info_of(opcode).solicited; }
};

/// The fields that all segments of a Send have in common.
struct MessageInfo {
  Opcode opcode = Opcode::send;
  bool has_immediate = false;
  STag invalidate_stag = 0;
  uint64_t immediate = 0;
  friend bool operator==(const MessageInfo&, const MessageInfo&) = default;

  static MessageInfo of(const DatagramSegment& segment) {
    return {segment.opcode, segment.has_immediate, segment.invalidate_stag, segment.immediate};
  }
};

/// A Read Request, which is one segment.
DatagramSegment request_segment(uint32_t msn, const ReadRequest& request);

/// The header of a segment of the response to a request; without its payload.
DatagramSegment response_segment(const ReadRequest& request, const ddp::Segment& segment);

/// The flags that a segment's envelope has.
uint8_t flags_of(const DatagramSegment& segment);

/// Bytes of a segment besides its payload (without prefix, RD header and CRC). A Read Request has
/// no payload: its body counts here.
size_t segment_header_bytes(Opcode opcode, bool has_immediate);

/// Writes what precedes the payload, from the immediate on; returns its bytes.
size_t encode_segment_headers(const DatagramSegment& segment, Bytes out);

struct ParsedSegment {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  DatagramSegment segment = {};
};

/// Checks the segment inside an envelope of class UD, or what follows the RD header, in this order:
/// length for the headers, DDP version and reserved bits, RDMAP version, opcode, tagged bit, queue
/// number, the flags against the opcode, then the opcode's own rules. Sends: MO + payload within
/// the longest message (1 GiB). Write-Records: length for the extension, the message at most 1 GiB,
/// MO + payload within it, L exactly at its end, TO - MO and the message's end without wrap. Read
/// Requests: one segment of exactly their bytes, MO 0 and L, size at most
/// kMaxReadRequest, the sink's end without wrap. Read Responses: TO + payload without wrap.
ParsedSegment parse_segment(uint8_t flags, ConstBytes body);

// --- Errors.

/// The offending segment of an Error, as far as the message tells.
struct ErrorReport {
  TerminateCode code;
  /// As DatagramSegment::headers had them. When received: all of it, the DDP header alone, or
  /// nothing.
  ConstBytes headers = {};
  size_t segment_bytes = 0;  ///< of the segment, headers and payload; 0 without headers
};

/// The report of what is wrong with a parsed segment; it refers to the segment's headers.
ErrorReport report_of(TerminateCode code, const DatagramSegment& segment);

/// An Error without its headers.
inline constexpr size_t kShortestErrorBytes = 4;
/// An Error about a Read Request, whose headers are the longest.
inline constexpr size_t kLongestErrorBytes = 6 + ddp::kUntaggedHeaderBytes + kReadRequestBytes;

/// Writes what follows the header of a control message; returns its bytes, at most `room`. Of the
/// offending headers first what follows the DDP header is left out where it does not fit, then
/// all. Returns 0 where even that is too long.
size_t encode_error(const ErrorReport& error, size_t room, Bytes out);

struct ParsedError {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  ErrorReport error = {};
};
ParsedError parse_error(ConstBytes rest);

/// The description of the segment in an Error's copy of the headers; nothing where too few bytes
/// are there. With the DDP header alone, a Read Request's `request` and a Write-Record's MSN, MO
/// and message length are zero.
std::optional<DatagramSegment> parse_error_headers(ConstBytes headers);

}  // namespace diwarp::rdmap
