// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

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
inline constexpr size_t kMinMulpdu = 128;  // RFC 5044 section 4.5

/// Padding after a ULPDU: length field, ULPDU and padding together are a multiple of four.
constexpr size_t pad_bytes(size_t ulpdu) { return (4 - (kLengthBytes + ulpdu) % 4) % 4; }

/// Bytes of the whole FPDU.
constexpr size_t fpdu_bytes(size_t ulpdu) {
  return kLengthBytes + ulpdu + pad_bytes(ulpdu) + kCrcBytes;
}

/// The largest ULPDU whose FPDU fits a TCP segment of `emss` bytes without markers (RFC 5044
/// section 4.5), never below 128 and never above what the length field and a 64 KiB FPDU allow.
size_t mulpdu(size_t emss);

/// Writes the length field into the first two bytes of `out`.
void encode_length(size_t ulpdu, Bytes out);

/// Writes padding and CRC behind a ULPDU. `crc` has seen the length field and the ULPDU; null means
/// that CRCs are off and a zero goes in its place (RFC 5044 section 4.1). Returns bytes written
/// (4 to 7).
size_t encode_trailer(size_t ulpdu, const Crc32c* crc, Bytes out);

enum class DeframeStatus : uint8_t {
  fpdu,        ///< `ulpdu` is whole and its CRC right (or CRCs are off)
  incomplete,  ///< more bytes are needed, `needed` in all
  bad_crc,
};

struct Deframed {
  DeframeStatus status = DeframeStatus::incomplete;
  ConstBytes ulpdu = {};
  size_t consumed = 0;  ///< bytes of the stream that the FPDU takes
  size_t needed = 0;    ///< incomplete: bytes, from the front of the stream, to have before asking
                        ///< again; never more than the FPDU takes
};

/// Looks for an FPDU at the front of `stream`.
Deframed deframe(ConstBytes stream, bool check_crc);

}  // namespace diwarp::mpa
