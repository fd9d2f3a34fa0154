// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

/// The RD header: what makes datagrams between two queue pairs reliable and ordered. It stands
/// behind the prefix of datagrams of class RD (docs/wire-format.md). All fields in network order.
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
///   2 skip               its own          nothing
///   3 failure            its own          sink STag (32), code (32)
///   4 acknowledgement    0                0 to 16 words (64) of the map of what came early
///   5 probe              0                nothing
///   6 refusal            the refused one  code (32)
///   7 open               0                cookie (128)
///   8 reset              0                nothing
///
/// Only data may have the prefix's flags (immediate, solicited). A code is a Terminate's: layer (4)
/// type (4) error code (8), then 16 zero bits (RFC 5040 section 4.8). Flags: bit 0 "broken", of
/// open and reset alone.
///
/// --- Associations. Two queue pairs have at most one association with each other: a pair of
/// sequences of datagrams, one in each direction. Each side names it by an epoch, a number above 0
/// that a queue pair counts up with each association of one incarnation. Every datagram but open
/// and reset carries
///   incarnation        the sender's (in the prefix)
///   epoch              the sender's name for the association
///   peer epoch         the receiver's
///   peer incarnation   the receiver's
/// and is of the association only if all four are what the receiver has; other data, skips,
/// failures and probes are answered by a reset, other acknowledgements and refusals by nothing. An
/// older epoch of the same incarnation than the one that is there is answered by nothing.
///
/// An association begins so (the opener repeats its last step, ever slower, until the next comes):
///   1. opener: open, its epoch, peer epoch 0, peer incarnation 0, cookie 0. Window: as below.
///   2. other:  Challenge (class control) with a cookie of its choice; it keeps nothing.
///   3. opener: the same open with that cookie, and as peer incarnation the Challenge's.
///   4. other:  keeps the association, and answers with an acknowledgement, which has all names.
/// From then on both send. An open with a valid cookie that repeats the names of the association
/// that is there is answered as in 4. again; any other valid one (not of an older epoch) replaces
/// what was there. Two sides that open at the same time both do 4. and keep the epochs that they
/// drew.
///
/// A reset says that an association is not there (any more): its epoch and peer epoch are the
/// offending datagram's peer epoch and epoch, its peer incarnation the offending one's incarnation;
/// its own incarnation tells whether the peer restarted. `broken`, in a reset or an open: the
/// sender delivered something of this peer's within the last second, so that what is under way may
/// have been delivered.
///
/// What was not acknowledged when an association ends is done anew in the next one only if the
/// incarnation is the same and all of it are Reads, or the sender was not `broken`, no part of the
/// oldest message was acknowledged, and nothing of it was sent more than half a second ago (a queue
/// pair forgets a peer only after a second or more of silence, so it cannot have been delivered);
/// else it fails. Who opens anew because the path became too narrow for what has to be sent again
/// does all anew. So in a new association of the same incarnations a message may begin once more:
/// one that was delivered (a Send by its MSN, a Write-Record that is closed) is dropped, and counts
/// as delivered; an open Write-Record starts from nothing.
///
/// --- Sequence. Data, skips and failures of an association are numbered from 1 on, wrapping at
/// 2^32, and delivered in this order, once each. They are sent again with the same number and
/// content (or as skips) until acknowledged.
///   acknowledged   in every kind but open and reset: this datagram and all before were delivered
///                  (0 at the beginning). Delivered is what found its place: a Send its receive, a
///                  Write-Record its memory, a Read Request a place among those to be answered.
///   window         in every kind but reset: how many datagrams behind `acknowledged` may be on the
///                  way. acknowledged + window never moves back. In open: as if acknowledged were 0.
///   map            bit 63 of the first word: datagram acknowledged + 1, the next lower bit the
///                  next, and so on; set: it came, early or for want of a receive, and is kept.
///                  Words behind the last set bit are left out.
/// A receiver acknowledges at once what came twice, early or outside the window, a probe, and every
/// second datagram at the latest; the others as soon as it has nothing better to do. A datagram
/// counts as lost when a third one sent after it has come (more where the path reorders), or a
/// while (1/8 round trip) after a later one came. A sender without news for a while (smoothed round
/// trip + 4 deviations, doubling, up to a second) sends something again, or a probe where nothing
/// is left to send.
///
/// --- Refusals. What cannot be delivered for an error (no such memory, no right to it, too long,
/// another Q_Key ...) is answered by a refusal with its number, which is acknowledged + 1, as often
/// as anything comes, and the sequence stands still. The sender fails the message, and sends every
/// datagram of it that is not acknowledged as a skip from then on. A skip is delivered by doing
/// nothing; the rest of a message of which a part was refused or skipped is ignored.
///
/// --- Reads. A Read Request is data in one direction, its Read Responses are data in the other, in
/// the order of the requests, each from its first byte to its last without gaps or overlap. At most
/// kMaxReadRequests may be unanswered in an association; one more is refused. A failure stands for
/// all that is missing of the response to the oldest request, whose sink STag it names.
namespace diwarp::dgram {

inline constexpr size_t kRdHeaderBytes = 24;
inline constexpr size_t kRdMapWords = 16;
inline constexpr size_t kRdCookieBytes = 16;
inline constexpr size_t kRdCodeBytes = 4;
inline constexpr size_t kRdFailureBytes = 8;
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
  ConstBytes rest = {};  ///< what follows
};

/// Judges in the order of RdHeaderFault's names, but the kind after `truncated` for the header's
/// own 24 bytes.
ParsedRdHeader parse_rd_header(ConstBytes body);

/// Writes the header; returns kRdHeaderBytes.
size_t encode_rd_header(const RdHeader& header, Bytes out);

/// What came early, as an acknowledgement tells: bit i is datagram acknowledged + 1 + i.
struct RdMap {
  std::array<uint64_t, kRdMapWords> words{};  // bit 63 of the first word is bit 0
  size_t count = 0;                           // words in use

  bool test(size_t bit) const {
    return bit < count * 64 && (words[bit / 64] >> (63 - bit % 64) & 1) != 0;
  }
  /// Ignored beyond kRdMapWords words.
  void set(size_t bit) {
    if (bit >= kRdMapWords * 64) return;
    words[bit / 64] |= uint64_t{1} << (63 - bit % 64);
    if (count <= bit / 64) count = bit / 64 + 1;
  }
  /// One above the highest set bit; 0 where none is.
  size_t size() const;
};
/// Returns the bytes written: 8 a word.
size_t encode_rd_map(const RdMap& map, Bytes out);
/// Of what an acknowledgement's parsed header left: whole words, as many as there may be.
RdMap decode_rd_map(ConstBytes rest);

/// A Terminate's code (layer, type, error code) in 4 bytes.
struct RdCode {
  uint8_t layer = 0;
  uint8_t type = 0;
  uint8_t code = 0;
  friend bool operator==(const RdCode&, const RdCode&) = default;
};
size_t encode_rd_code(const RdCode& code, Bytes out);
/// Of at least 4 bytes.
RdCode decode_rd_code(ConstBytes rest);

/// True if `a` comes before `b` (RFC 1982).
constexpr bool rd_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

/// The number nearest to `reference` whose low 32 bits are `wire`.
constexpr uint64_t rd_extend(uint32_t wire, uint64_t reference) {
  return reference + static_cast<uint64_t>(static_cast<int64_t>(
                         static_cast<int32_t>(wire - static_cast<uint32_t>(reference))));
}

}  // namespace diwarp::dgram
