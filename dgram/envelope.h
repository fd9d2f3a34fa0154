// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "base/counters.h"

namespace diwarp::dgram {

enum class DatagramClass : uint8_t { unreliable = 0, reliable = 1, control = 2 };

/// What the prefix of a datagram says, besides the version.
struct Labels {
  DatagramClass datagram_class = DatagramClass::unreliable;
  uint8_t flags = 0;         ///< the segment's; rdmap says what they mean
  uint32_t incarnation = 0;  ///< the sender's, towards this destination
};

struct OpenedEnvelope;

/// The outer part of the datagram wire format, version 2 (docs/wire-format.md):
///
///   prefix (8) | body | CRC32C (4)
///   prefix: version (4 bits) class (4) | flags (8) | reserved, 0 (16) | incarnation (32)
///
/// The CRC covers all before it and is stored as MPA stores it (RFC 5044 section 4.4).
class Envelope {
 public:
  static constexpr uint8_t kVersion = 2;
  static constexpr size_t kPrefixBytes = 8;
  static constexpr size_t kCrcBytes = 4;
  static constexpr size_t kOverhead = kPrefixBytes + kCrcBytes;
  /// The flags that a segment's datagram may have. Control messages have none.
  static constexpr uint8_t kFlags = 0x03;

  /// Bytes that the body of a datagram of at most `datagram` bytes may have.
  static constexpr size_t max_body(size_t datagram) {
    return datagram > kOverhead ? datagram - kOverhead : 0;
  }

  /// Completes a datagram in place. `front` is the prefix's room and what of the body follows it,
  /// `rest` is the remaining body; `trailer` is the CRC's room. Returns the bytes of the datagram.
  static size_t seal(const Labels& labels, Bytes front, std::span<const ConstBytes> rest,
                     Bytes trailer);

  /// Checks, in this order: length, version, class, flags, reserved bits, CRC.
  static OpenedEnvelope open(ConstBytes datagram);
};

/// Either what an envelope held, or the reason why the datagram is dropped.
struct OpenedEnvelope {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  Labels labels = {};
  ConstBytes body = {};
};

}  // namespace diwarp::dgram
