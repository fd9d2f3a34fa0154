// SPDX-License-Identifier: Apache-2.0
#include <cassert>
#include <optional>

#include "base/byte_order.h"
#include "base/offsets.h"
#include "rdmap/datagram.h"

namespace diwarp::rdmap {
namespace {

// A Write-Record's extension.
constexpr size_t kRecordMsnAt = 0;
constexpr size_t kRecordOffsetAt = 4;
constexpr size_t kRecordLengthAt = 8;
static_assert(kRecordLengthAt + sizeof(uint32_t) == kRecordExtensionBytes);

/// Why a segment is dropped, or nothing: what a std::optional<Counter> is, in one register.
class Fault {
 public:
  constexpr Fault() = default;
  constexpr Fault(Counter reason) : reason_(static_cast<int32_t>(reason)) {}
  constexpr explicit operator bool() const { return reason_ != kNone; }
  constexpr Counter operator*() const { return static_cast<Counter>(reason_); }

 private:
  static constexpr int32_t kNone = -1;
  int32_t reason_ = kNone;
};

/// Whether messages of this opcode may come with immediate data.
bool takes_immediate(const OpcodeInfo& info) {
  return info.type == MessageType::send || info.type == MessageType::write_record;
}

/// Bytes between the DDP header and the payload.
size_t extension_bytes(MessageType type) {
  if (type == MessageType::write_record) return kRecordExtensionBytes;
  return type == MessageType::read_request ? kReadRequestBytes : 0;
}

size_t header_bytes(const OpcodeInfo& info) {
  return ddp::header_bytes(info.tagged) + extension_bytes(info.type);
}

// What follows is inline: all of it is done for each segment, and none of it is long.
[[gnu::always_inline]] inline Fault check_header(const ddp::Header& header) {
  if (header.version != ddp::kVersion) return Counter::drop_ddp_version;  // guard(datagram)
  // guard(datagram): without header.reserved != 0 ||
  // guard(datagram): condition => header.reserved != 0
  if (header.reserved != 0 || reserved_of(header.ulp_control) != 0) return Counter::drop_reserved;
  // guard(datagram)
  if (version_of(header.ulp_control) != kVersion) return Counter::drop_rdmap_version;
  const OpcodeInfo* info = find_opcode(opcode_of(header.ulp_control));
  // guard(datagram): condition => info == nullptr
  if (info == nullptr || !info->on_datagrams) return Counter::drop_opcode;
  if (header.tagged != info->tagged) return Counter::drop_opcode;  // guard(datagram)
  // guard(datagram)
  if (header.queue_number != info->queue_number) return Counter::drop_queue_number;
  return {};
}

inline Fault check_flags(const OpcodeInfo& info, uint8_t flags) {
  // guard(datagram)
  if ((flags & kImmediateFlag) != 0 && !takes_immediate(info)) return Counter::drop_flags;
  if (info.type == MessageType::write_record) return {};
  const bool solicited = (flags & kSolicitedFlag) != 0;
  // guard(datagram): => return {};
  return solicited == info.solicited ? Fault{} : Counter::drop_flags;
}

/// The meaning of the word of an untagged header.
template <class Segment>
auto& word_of(const OpcodeInfo& info, Segment& segment) {
  if (info.type == MessageType::read_request) return segment.nonce;
  return info.invalidates ? segment.invalidate_stag : segment.q_key;
}

/// The fields of a DDP header that has been checked.
inline void take_header(const ddp::Header& header, const OpcodeInfo& info,
                        DatagramSegment& segment) {
  segment.opcode = info.opcode;
  segment.last = header.last;
  if (header.tagged) {
    segment.stag = header.stag;
    segment.tagged_offset = header.tagged_offset;
    return;
  }
  word_of(info, segment) = header.ulp_word;
  segment.msn = header.msn;
  segment.message_offset = header.message_offset;
}

inline void read_extension(ConstBytes bytes, MessageType type, DatagramSegment& segment) {
  if (type == MessageType::read_request) segment.request = decode_read_request(bytes);
  if (type != MessageType::write_record) return;
  segment.msn = load_be<uint32_t>(bytes.data() + kRecordMsnAt);
  segment.message_offset = load_be<uint32_t>(bytes.data() + kRecordOffsetAt);
  segment.message_length = load_be<uint32_t>(bytes.data() + kRecordLengthAt);
}

Fault check_send(const DatagramSegment& segment) {
  const uint64_t end = uint64_t{segment.message_offset} + segment.payload.size();
  return end > kMaxMessage ? Counter::drop_oversized : Fault{};  // guard(datagram): => return {};
}

/// Every segment describes the whole message, so each is checked against all of it.
Fault check_record(const DatagramSegment& segment) {
  const uint64_t length = segment.message_length;
  const uint64_t end = uint64_t{segment.message_offset} + segment.payload.size();
  // guard(datagram): condition => end > length
  // guard(datagram): without || end > length
  if (length > kMaxMessage || end > length) return Counter::drop_oversized;
  if (segment.last != (end == length)) return Counter::drop_contradiction;  // guard(datagram)
  // guard(datagram)
  if (segment.tagged_offset < segment.message_offset) return Counter::drop_bounds;
  const uint64_t base = segment.tagged_offset - segment.message_offset;
  return wraps(base, length) ? Counter::drop_bounds : Fault{};  // guard(datagram): => return {};
}

Fault check_request(const DatagramSegment& segment) {
  // guard(datagram)
  // guard(datagram): condition => !segment.payload.empty()
  if (!segment.payload.empty() || segment.message_offset != 0) return Counter::drop_oversized;
  if (!segment.last) return Counter::drop_contradiction;  // guard(datagram)
  const ReadRequest& request = segment.request;
  if (request.length > kMaxReadRequest) return Counter::drop_oversized;  // guard(datagram)
  // guard(datagram): => return {};
  return wraps(request.sink_offset, request.length) ? Counter::drop_bounds : Fault{};
}

Fault check_response(const DatagramSegment& segment) {
  const bool beyond = wraps(segment.tagged_offset, segment.payload.size());
  // guard(datagram): without beyond ? Counter::drop_bounds : Fault
  return beyond ? Counter::drop_bounds : Fault{};
}

inline Fault check_message(MessageType type, const DatagramSegment& segment) {
  switch (type) {
    case MessageType::write_record:
      return check_record(segment);
    case MessageType::read_request:
      return check_request(segment);
    case MessageType::read_response:
      return check_response(segment);
    default:
      return check_send(segment);
  }
}

ddp::Header to_header(const OpcodeInfo& info, const DatagramSegment& segment) {
  return {.tagged = info.tagged,
          .last = segment.last,
          .ulp_control = control_octet(segment.opcode),
          .stag = segment.stag,
          .tagged_offset = segment.tagged_offset,
          .ulp_word = word_of(info, segment),
          .queue_number = info.queue_number,
          .msn = segment.msn,
          .message_offset = segment.message_offset};
}

size_t write_extension(MessageType type, const DatagramSegment& segment, Bytes out) {
  if (type == MessageType::read_request) return encode_body(segment.request, out);
  if (type != MessageType::write_record) return 0;
  assert(out.size() >= kRecordExtensionBytes);
  store_be(out.data() + kRecordMsnAt, segment.msn);
  store_be(out.data() + kRecordOffsetAt, segment.message_offset);
  store_be(out.data() + kRecordLengthAt, segment.message_length);
  return kRecordExtensionBytes;
}

/// Fills `segment` in, which means something only where there is no fault.
[[gnu::always_inline]] inline Fault parse(uint8_t flags, ConstBytes body,
                                          DatagramSegment& segment) {
  const bool has_immediate = (flags & kImmediateFlag) != 0;
  const size_t start = has_immediate ? kImmediateBytes : 0;
  if (body.size() < start) return Counter::drop_truncated;  // guard(datagram)
  const ConstBytes rest = body.subspan(start);
  const std::optional<ddp::Header> header = ddp::decode(rest);
  if (!header) return Counter::drop_truncated;                  // guard(datagram)
  if (const Fault fault = check_header(*header)) return fault;  // guard(datagram)

  const OpcodeInfo& info = info_of(static_cast<Opcode>(opcode_of(header->ulp_control)));
  take_header(*header, info, segment);
  if (const Fault fault = check_flags(info, flags)) return fault;  // guard(datagram)

  const size_t header_end = header_bytes(info);
  if (rest.size() < header_end) return Counter::drop_truncated;  // guard(datagram)
  segment.headers = rest.first(header_end);
  segment.payload = rest.subspan(header_end);
  read_extension(segment.headers.subspan(ddp::header_bytes(header->tagged)), info.type, segment);
  segment.has_immediate = has_immediate;
  if (has_immediate) segment.immediate = decode_immediate(body.first(kImmediateBytes));
  const bool record = info.type == MessageType::write_record;
  segment.record_solicited = record && (flags & kSolicitedFlag) != 0;
  return check_message(info.type, segment);  // guard(datagram): => return {};
}

}  // namespace

DatagramSegment request_segment(uint32_t msn, const ReadRequest& request) {
  DatagramSegment segment;
  segment.opcode = Opcode::read_request;
  segment.last = true;
  segment.msn = msn;
  segment.request = request;
  return segment;
}

DatagramSegment response_segment(const ReadRequest& request, const ddp::Segment& segment) {
  DatagramSegment header;
  header.opcode = Opcode::read_response;
  header.stag = request.sink_stag;
  segment.set_place(header, request.sink_offset);
  return header;
}

uint8_t flags_of(const DatagramSegment& segment) {
  return static_cast<uint8_t>((segment.has_immediate ? kImmediateFlag : 0) |
                              (segment.solicited() ? kSolicitedFlag : 0));
}

size_t segment_header_bytes(Opcode opcode, bool has_immediate) {
  return (has_immediate ? kImmediateBytes : 0) + header_bytes(info_of(opcode));
}

size_t encode_segment_headers(const DatagramSegment& segment, Bytes out) {
  assert(out.size() >= segment_header_bytes(segment.opcode, segment.has_immediate));
  assert(!segment.has_immediate || takes_immediate(info_of(segment.opcode)));
  size_t at = segment.has_immediate ? encode_immediate(segment.immediate, out) : 0;
  const OpcodeInfo& info = info_of(segment.opcode);
  at += ddp::encode(to_header(info, segment), out.subspan(at));
  return at + write_extension(info.type, segment, out.subspan(at));
}

ParsedSegment parse_segment(uint8_t flags, ConstBytes body) {
  ParsedSegment parsed;
  const Fault fault = parse(flags, body, parsed.segment);
  parsed.valid = !fault;
  if (fault) parsed.drop_reason = *fault;
  return parsed;
}

std::optional<DatagramSegment> parse_error_headers(ConstBytes headers) {
  const std::optional<ddp::Header> header = ddp::decode(headers);
  // guard(datagram): condition => !header
  if (!header || check_header(*header)) return std::nullopt;
  DatagramSegment segment;
  const OpcodeInfo& info = info_of(static_cast<Opcode>(opcode_of(header->ulp_control)));
  take_header(*header, info, segment);
  segment.headers = headers;
  const size_t whole = header_bytes(info);
  if (headers.size() >= whole) {  // guard(datagram): condition => headers.size() >= 18
    const size_t ddp_bytes = ddp::header_bytes(header->tagged);
    read_extension(headers.subspan(ddp_bytes, whole - ddp_bytes), info.type, segment);
  }
  return segment;
}

}  // namespace diwarp::rdmap
