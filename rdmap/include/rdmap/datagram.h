// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/counters.h"
#include "ddp/header.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rdmap/bodies.h"
#include "rdmap/opcodes.h"

/// The datagram wire format, version 1 (docs/wire-format.md): one DDP segment, or one control
/// message, per UDP datagram.
///
///   prefix (8) | RD header (class RD) | immediate (8) | DDP and RDMAP header | payload | CRC32C (4)
///
/// Parsing goes in two steps, since what lies between belongs to another layer: the envelope
/// (prefix and CRC), then what is inside.
namespace diwarp::rdmap {

inline constexpr size_t kPrefixBytes = 8;
inline constexpr size_t kDatagramCrcBytes = 4;
inline constexpr uint8_t kDatagramVersion = 1;

enum class DatagramClass : uint8_t { unreliable = 0, reliable = 1, control = 2 };

inline constexpr uint8_t kImmediateFlag = 1;
inline constexpr uint8_t kSolicitedFlag = 2;

inline constexpr size_t kRecordExtensionBytes = 12;  // MSN, MO, message length
/// The most that one Read Request asks for; longer Reads are several.
inline constexpr uint32_t kMaxReadRequest = uint32_t{256} << 10;

// --- The envelope.

struct Envelope {
  DatagramClass datagram_class = DatagramClass::unreliable;
  uint8_t flags = 0;
  uint32_t incarnation = 0;
  ConstBytes body = {};  ///< between prefix and CRC
};

/// Either an envelope or the reason why the datagram is dropped.
struct ParsedEnvelope {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  Envelope envelope = {};
};

/// Judges, in this order: length, version, class, flags (control has none), reserved bits, CRC.
ParsedEnvelope parse_envelope(ConstBytes datagram);

/// Writes the prefix to the front of `out`; returns kPrefixBytes.
size_t encode_prefix(DatagramClass datagram_class, uint8_t flags, uint32_t incarnation, Bytes out);

/// The CRC trailer for bytes whose CRC32C is `crc`: stored as MPA stores it (RFC 5044 section 4.4).
void encode_datagram_crc(uint32_t crc, Bytes out);

// --- Segments (classes UD and RD).

/// One segment of a message over datagrams, in host order. Which fields mean something depends on
/// the opcode: Sends have q_key (with invalidate: invalidate_stag), MSN and MO; Read Requests MSN
/// and `request`; Read Responses STag and TO; Write-Records STag, TO, MSN, MO and message_length.
struct DatagramSegment {
  Opcode opcode = Opcode::send;
  bool last = false;
  bool has_immediate = false;
  uint64_t immediate = 0;  ///< Sends and Write-Records
  uint32_t q_key = 0;
  STag invalidate_stag = 0;
  uint32_t msn = 0;
  uint32_t message_offset = 0;
  STag stag = 0;
  uint64_t tagged_offset = 0;
  uint32_t message_length = 0;
  bool record_solicited = false;  ///< Write-Records
  ReadRequest request = {};  ///< as RFC 5040 section 4.4 has it
  ConstBytes payload = {};
  ConstBytes headers = {};   ///< parsed: DDP header and all up to the payload, for Errors

  /// Sends have opcodes for it; for a Write-Record the flag alone tells.
  bool solicited() const { return record_solicited || facts_of(opcode).solicited; }
};

/// A Read Request, which is one segment.
DatagramSegment request_segment(uint32_t msn, const ReadRequest& request);

/// The segment that answers bytes [offset, offset + length) of a request; without its payload.
DatagramSegment response_segment(const ReadRequest& request, uint32_t offset, uint32_t length);

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

/// Judges the segment inside an envelope of class UD, or what follows the RD header, in this order:
/// length for the headers, DDP version and reserved bits, RDMAP version, opcode, tagged bit, queue
/// number, the flags against the opcode, then the opcode's own rules. Sends: MO + payload within
/// the longest message (1 GiB). Write-Records: length for the extension, the message at most 1 GiB,
/// MO + payload within it, L exactly at its end, TO - MO and the message's end without wrap. Read
/// Requests: one segment of exactly their bytes, reserved bits, MO 0 and L, size at most
/// kMaxReadRequest, the sink's end without wrap. Read Responses: TO + payload without wrap.
ParsedSegment parse_segment(uint8_t flags, ConstBytes body);

// --- Control messages (class control).

enum class ControlType : uint8_t {
  challenge = 1,  ///< to a source that is not known to be where it says: echo this
  echo = 2,       ///< the answer
  error = 3,      ///< about a segment that came from there
};

/// Opaque to its receiver.
using Cookie = std::array<std::byte, 16>;

/// The offending segment of an Error, as far as the message tells.
struct ErrorReport {
  TerminateCode code;
  /// What DatagramSegment::headers was. When received: all of it, the DDP header alone, or nothing.
  ConstBytes headers = {};
  size_t segment_bytes = 0;  ///< of the segment, headers and payload; 0 without headers
};

/// The report of what is wrong with a parsed segment; it refers to the segment's headers.
ErrorReport report_of(TerminateCode code, const DatagramSegment& segment);

inline constexpr size_t kControlHeaderBytes = 4;  // type, 3 reserved
/// Whole datagrams, prefix and CRC included.
inline constexpr size_t kCookieMessageBytes =
    kPrefixBytes + kControlHeaderBytes + sizeof(Cookie) + kDatagramCrcBytes;
inline constexpr size_t kShortestErrorBytes =
    kPrefixBytes + kControlHeaderBytes + 4 + kDatagramCrcBytes;

struct ControlMessage {
  ControlType type = ControlType::error;
  Cookie cookie = {};       ///< challenge, echo
  ErrorReport error = {};
};

/// Writes what lies between prefix and CRC; returns its bytes. `limit` bytes are the most that the
/// whole datagram may have: of an Error's headers, first what follows the DDP header is left out
/// where it does not fit, then all. Returns 0 where even that is too long.
size_t encode_control(const ControlMessage& message, size_t limit, Bytes out);

struct ParsedControl {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  ControlMessage message = {};
};
ParsedControl parse_control(ConstBytes body);

/// What an Error's copy of the headers says of the segment; nothing where too few bytes are there.
/// With the DDP header alone, a Read Request's `request` and a Write-Record's MSN, MO and message
/// length are zero.
std::optional<DatagramSegment> parse_error_headers(ConstBytes headers);

}  // namespace diwarp::rdmap
