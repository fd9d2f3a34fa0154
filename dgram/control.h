// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/counters.h"
#include "dgram/envelope.h"

/// Control messages: the contents of class `control` (docs/wire-format.md). The body begins with
///
///   0  type (8) | reserved, 0 (24)
///
/// A Challenge and its Echo go on with nonce (64) | cookie (128). The rest of an Error is not this
/// layer's (rdmap/error_message.h).
namespace diwarp::dgram {

enum class ControlType : uint8_t {
  challenge = 1,  ///< to a source that is not known to be where it says: echo this
  echo = 2,       ///< the answer
  error = 3,      ///< about a segment that came from there
};

inline constexpr size_t kControlHeaderBytes = 4;

/// It means nothing to any but its maker.
using Cookie = std::array<std::byte, 16>;

/// Of a Challenge or an Echo.
struct Challenge {
  /// Repeats the nonce of the datagram that caused the Challenge, so that nobody can forge it
  /// without having seen that datagram.
  uint64_t nonce = 0;
  Cookie cookie = {};
};

inline constexpr size_t kChallengeBytes = kControlHeaderBytes + sizeof(uint64_t) + sizeof(Cookie);
/// Of the whole datagram.
inline constexpr size_t kChallengeDatagramBytes = kChallengeBytes + Envelope::kOverhead;

/// Writes the header; returns kControlHeaderBytes.
size_t encode_control_header(ControlType type, Bytes out);
/// Writes a Challenge or an Echo; returns kChallengeBytes.
size_t encode_challenge(ControlType type, const Challenge& challenge, Bytes out);

struct ParsedControl {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  ControlType type = ControlType::error;
  Challenge challenge = {};  ///< challenge, echo
  ConstBytes rest = {};      ///< error: the bytes after the header
};

/// Checks, in this order: length of the header, type, reserved bytes, length of what follows.
ParsedControl parse_control(ConstBytes body);

}  // namespace diwarp::dgram
