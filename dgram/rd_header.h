// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "dgram/control.h"

/// The RD header, which makes datagrams between two queue pairs reliable and ordered. It follows
/// the prefix of datagrams of class RD. All fields in network order. docs/wire-format.md has the
/// rules, docs/reliable.md the state machines.
///
///    0  kind (8) | flags (8) | window (16)
///    4  epoch (32)
///    8  peer epoch (32)
///   12  peer incarnation (32)
///   16  sequence (32)
///   20  acknowledged (32)
///   24  what the kind says, up to the CRC
///
///   kind                 sequence         what follows
///   1 data               its own          immediate (8, if flagged), DDP segment, as in class UD
///   2 skip               its own          message: kind (8), reserved, 0 (24), number (32)
///   3 failure            its own          sink STag (32), code (32)
///   4 acknowledgement    0                0 to 64 words (64) of the map of early ones
///   5 probe              the last sent    nothing
///   6 refusal            the refused one  code (32)
///   7 open               0                nonce (64), cookie (128)
///   8 reset              the answered one nothing
///
/// Only data may have the prefix's flags (immediate, solicited). Flags: bit 0 "broken", of open and
/// reset alone; bit 1 "remembers", of all but reset; bit 2 "waits", of acknowledgement alone. Codes
/// are plain numbers here; rdmap says what they mean.
namespace diwarp::dgram {

inline constexpr size_t kRdHeaderBytes = 24;
inline constexpr size_t kRdMapWords = 64;
/// What version 0.1.0 reads: it drops an acknowledgement with more.
inline constexpr size_t kRdShortMapWords = 16;
inline constexpr size_t kRdProofBytes = 24;
inline constexpr size_t kRdCodeBytes = 4;
inline constexpr size_t kRdFailureBytes = 8;
inline constexpr size_t kRdSkipBytes = 8;
/// Read Requests of one association that may be unanswered.
inline constexpr uint32_t kMaxReadRequests = 16;

enum class RdKind : uint8_t {
  data = 1,
  skip = 2,
  failure = 3,
  acknowledgement = 4,
  probe = 5,
  refusal = 6,
  open = 7,
  reset = 8,
};

inline constexpr uint8_t kRdBrokenFlag = 1;
inline constexpr uint8_t kRdRemembersFlag = 2;
inline constexpr uint8_t kRdWaitsFlag = 4;

struct RdHeader {
  RdKind kind = RdKind::data;
  uint8_t flags = 0;
  uint16_t window = 0;
  uint32_t epoch = 0;
  uint32_t peer_epoch = 0;
  uint32_t peer_incarnation = 0;
  uint32_t sequence = 0;
  uint32_t acknowledged = 0;

  /// Data, skips and failures: delivered in order, once.
  bool sequenced() const { return kind <= RdKind::failure; }
  bool broken() const { return (flags & kRdBrokenFlag) != 0; }
  bool remembers() const { return (flags & kRdRemembersFlag) != 0; }
  bool waits() const { return (flags & kRdWaitsFlag) != 0; }
};

/// Why bytes are no RD header.
enum class RdHeaderFault : uint8_t {
  none,
  truncated,  ///< shorter than the header, or than the kind wants
  excess,     ///< more bytes than the kind has, or a map of broken words
  kind,       ///< not known
  flags,      ///< not known, or not of this kind
  fields,     ///< a field that the kind has not is not 0, or one that it has is 0
};

struct ParsedRdHeader {
  RdHeaderFault fault = RdHeaderFault::none;
  RdHeader header = {};
  ConstBytes rest = {};  ///< the bytes after the header
};

/// Checks in the order of RdHeaderFault's names, but the kind after `truncated` for the header's
/// own 24 bytes.
ParsedRdHeader parse_rd_header(ConstBytes body);

/// Writes the header; returns kRdHeaderBytes.
size_t encode_rd_header(const RdHeader& header, Bytes out);

/// The early datagrams, as an acknowledgement tells: bit i is datagram acknowledged + 1 + i.
struct RdMap {
  std::array<uint64_t, kRdMapWords> words;  // bit 63 of the first word is bit 0
  size_t count = 0;                         // words in use; the others have no value

  // Not all of the words are cleared for each datagram that has no map.
  RdMap() {}  // NOLINT(modernize-use-equals-default)
  bool test(size_t bit) const {
    return bit < count * 64 && (words[bit / 64] >> (63 - bit % 64) & 1) != 0;
  }
  /// Ignored beyond kRdMapWords words.
  void set(size_t bit) {
    if (bit >= kRdMapWords * 64) return;
    while (count <= bit / 64) words[count++] = 0;
    words[bit / 64] |= uint64_t{1} << (63 - bit % 64);
  }
  /// One above the highest set bit; 0 where none is.
  size_t size() const;
};
/// Returns the bytes written: 8 a word.
size_t encode_rd_map(const RdMap& map, Bytes out);
/// Of what an acknowledgement's parsed header left: whole words, as many as there may be.
RdMap decode_rd_map(ConstBytes rest);

/// The messages whose segments a sequence carries.
enum class MessageKind : uint8_t {
  send = 1,
  write_record = 2,
  read_request = 3,
  read_response = 4,
};

/// How both ends call a message: the MSN of a Send, Write-Record or Read Request; the sink STag of
/// a Read Response.
struct MessageName {
  MessageKind kind = MessageKind::send;
  uint32_t number = 0;
  friend bool operator==(const MessageName&, const MessageName&) = default;
};

/// The body of a skip. Each returns the bytes that it writes; the decoders take what
/// a parsed header left.
size_t encode_rd_skip(const MessageName& name, Bytes out);
MessageName decode_rd_skip(ConstBytes rest);

/// The body of a failure.
struct RdFailure {
  uint32_t sink_stag = 0;
  uint32_t code = 0;
};
size_t encode_rd_failure(const RdFailure& failure, Bytes out);
RdFailure decode_rd_failure(ConstBytes rest);

/// The body of a refusal.
size_t encode_rd_code(uint32_t code, Bytes out);
uint32_t decode_rd_code(ConstBytes rest);

/// The body of an open: the opener's nonce, and the cookie of the Challenge that
/// repeated it; zero at first.
size_t encode_rd_proof(const Challenge& proof, Bytes out);
Challenge decode_rd_proof(ConstBytes rest);

/// The two names of one end of an association.
struct EndNames {
  uint32_t incarnation = 0;
  uint32_t epoch = 0;
};

/// The number of the first datagram from `sender` to `receiver`: the low 32 bits of SipHash-2-4 of
/// the 8 bytes "sequence", with `sender`'s incarnation and epoch as the two words, high and low, of
/// the key's first half and `receiver`'s as those of its second half. So it is bound to what both
/// ends contributed, and differs from one association to the next.
uint32_t first_sequence(const EndNames& sender, const EndNames& receiver);

/// The number nearest to `reference` whose low 32 bits are `wire`.
constexpr uint64_t rd_extend(uint32_t wire, uint64_t reference) {
  return reference + static_cast<uint64_t>(static_cast<int64_t>(
                         static_cast<int32_t>(wire - static_cast<uint32_t>(reference))));
}

}  // namespace diwarp::dgram
