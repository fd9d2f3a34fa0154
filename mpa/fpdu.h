// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"

/// Framed PDUs (RFC 5044 section 4): ULPDU length (2), ULPDU, padding to a multiple of four (0 to
/// 3), CRC (4).
namespace diwarp::mpa {

inline constexpr size_t kLengthBytes = 2;
inline constexpr size_t kCrcBytes = 4;
inline constexpr size_t kMaxPad = 3;
inline constexpr size_t kMaxTrailer = kMaxPad + kCrcBytes;
inline constexpr size_t kMaxUlpdu = 65535;
inline constexpr size_t kMinMulpdu = 128;    // RFC 5044 sections 3 and 4.5
inline constexpr size_t kMaxMulpdu = 64768;  // RFC 5044 section 3

/// Padding after a ULPDU: length field, ULPDU and padding together are a multiple of four.
// guard(rows:padding): 4 - (kLengthBytes + ulpdu) % 4 => kLengthBytes + ulpdu
constexpr size_t pad_bytes(size_t ulpdu) { return (4 - (kLengthBytes + ulpdu) % 4) % 4; }

/// Bytes of the whole FPDU.
constexpr size_t fpdu_bytes(size_t ulpdu) {
  return kLengthBytes + ulpdu + pad_bytes(ulpdu) + kCrcBytes;
}

/// The largest ULPDU whose FPDU fits a TCP segment of `emss` bytes without markers (RFC 5044
/// section 4.5), never below kMinMulpdu and never above kMaxMulpdu.
size_t mulpdu(size_t emss);

/// Writes the length field into the first two bytes of `out`.
void encode_length(size_t ulpdu, Bytes out);

/// Writes padding and CRC behind a ULPDU. `crc` has seen the length field and the ULPDU; null means
/// that CRCs are off and a zero goes in its place (RFC 5044 section 4.1). Returns bytes written
/// (4 to 7).
size_t encode_trailer(size_t ulpdu, const Crc32c* crc, Bytes out);

/// Markers (RFC 5044 section 4.3): four bytes at every 512th byte of the stream of FPDUs, the first
/// one at its very beginning.
inline constexpr size_t kMarkerSpacing = 512;
inline constexpr size_t kMarkerBytes = 4;

/// The largest ULPDU for `emss` where markers are sent.
size_t mulpdu_with_markers(size_t emss);

/// The longest FPDU of a ULPDU with markers in it, wherever it begins.
size_t marked_fpdu_bytes(size_t ulpdu);

/// Writes a whole FPDU with markers: the ULPDU is the pieces one after the other, `position` the
/// bytes of the stream before it (with markers). The CRC covers the markers inside. `out` must hold
/// marked_fpdu_bytes(). Returns bytes written.
size_t encode_marked_fpdu(std::span<const ConstBytes> ulpdu, uint64_t position, bool crc,
                          Bytes out);

enum class DeframeStatus : uint8_t {
  fpdu,        ///< `ulpdu` is whole and its CRC right (or CRCs are off)
  incomplete,  ///< more bytes are needed, `needed` in all
  bad_crc,
  bad_marker,  ///< a marker does not point to the FPDU's beginning (RFC 5044 section 8, error 3)
};

struct Deframed {
  DeframeStatus status = DeframeStatus::incomplete;
  ConstBytes ulpdu = {};
  size_t consumed = 0;  ///< bytes of the stream that the FPDU takes, markers included
  size_t needed = 0;    ///< incomplete: bytes, from the front of the stream, to have before asking
                        ///< again; never more than the FPDU takes
};

/// An FPDU of which only a part is there.
struct PartialFpdu {
  ConstBytes ulpdu = {};  ///< the bytes of its ULPDU that are there
  size_t missing = 0;     ///< bytes of the ULPDU that are still to come
  size_t trailer = 0;     ///< bytes behind it: padding and CRC
};

/// Takes FPDUs off a stream of bytes. Where CRCs are on, those that came through memory of the
/// host may come without.
class Deframer {
 public:
  Deframer() = default;
  Deframer(bool check_crc, bool markers);

  /// Looks for an FPDU at the front of `stream`; changes nothing that a second look would notice.
  /// With markers the ULPDU lies in the deframer's own memory, until the next call.
  Deframed next(ConstBytes stream);

  /// Whether the beginning of an FPDU may be used before the rest is there: neither a CRC nor
  /// markers have to be right first.
  // guard(direct-placement): without !checks_front() &&
  bool allows_partial() const { return !checks_front() && !markers_; }
  /// The usable part of an incomplete FPDU at the front. Nothing unless allows_partial().
  std::optional<PartialFpdu> partial_fpdu(ConstBytes stream) const;

  /// Bytes came behind those at the front, of which an FPDU that they begin bears its CRC or does
  /// not. `front_begun`: the FPDU at the front began before them.
  void came(bool sealed, bool front_begun) {
    if (!front_begun) front_sealed_ = sealed;
    rest_sealed_ = sealed;
  }
  /// The front moves past an FPDU of so many bytes.
  void step(size_t consumed) {
    position_ += consumed;
    front_sealed_ = rest_sealed_;
  }

 private:
  Deframed next_marked(ConstBytes stream);
  bool checks_front() const { return check_crc_ && front_sealed_; }

  bool check_crc_ = true;
  bool markers_ = false;
  bool front_sealed_ = true;  // the FPDU at the front bears its CRC, if the connection has any
  bool rest_sealed_ = true;   // the same of those behind it
  uint64_t position_ = 0;     // of the stream's front
  std::vector<std::byte> unmarked_;  // with markers: the FPDU without them
};

}  // namespace diwarp::mpa
