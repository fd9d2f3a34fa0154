// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "dgram/envelope_format.h"

namespace diwarp::dgram {

/// The outer part of the datagram wire format, version 2 (docs/wire-format.md):
///
///   prefix (8) | body | CRC32C (4)
///   prefix: version (4 bits) class (4) | flags (8) | reserved, 0 (16) | incarnation (32)
///
/// The CRC covers all before it and is stored as MPA stores it (RFC 5044 section 4.4).
class Crc32cEnvelope : public EnvelopeSizes<8, 4> {
 public:
  static constexpr uint8_t kVersion = 2;

  /// Changes nothing of the body, in which `rest` follows what is in `front`.
  static size_t seal(const Labels& labels, Bytes front, std::span<const ConstBytes> rest,
                     Bytes trailer);

  /// Checks, in this order: length, version, class, flags, reserved bits, CRC. Changes nothing.
  static OpenedEnvelope open(ConstBytes datagram);

  static std::optional<uint32_t> quoted_incarnation(ConstBytes beginning);

  /// It needs nothing of its own.
  struct Sealer {
    explicit Sealer(size_t /*bytes*/) {}
    static void clear() {}
    static size_t seal(const Labels& labels, Bytes front, std::span<const ConstBytes> rest,
                       Bytes trailer) {
      return Crc32cEnvelope::seal(labels, front, rest, trailer);
    }
  };
};

}  // namespace diwarp::dgram
