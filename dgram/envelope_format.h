// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/counters.h"

/// An envelope: the outer part of a datagram, before its body and after it. All else that
/// sends and receives datagrams asks the envelope for its sizes, and knows nothing of its contents.
/// dgram/envelope.h says which one there is.
namespace diwarp::dgram {

enum class DatagramClass : uint8_t { unreliable = 0, reliable = 1, control = 2 };

/// The labels that an envelope gives its body.
struct Labels {
  DatagramClass datagram_class = DatagramClass::unreliable;
  uint8_t flags = 0;         ///< the segment's; rdmap says what they mean
  uint32_t incarnation = 0;  ///< the sender's, towards this destination
};

/// The flags that a segment's datagram may have. Control messages have none.
inline constexpr uint8_t kSegmentFlags = 0x03;

/// Either what an envelope held, or the reason why the datagram is dropped.
struct OpenedEnvelope {
  bool valid = false;
  Counter drop_reason = Counter::drop_truncated;
  Labels labels = {};
  ConstBytes body = {};  ///< in the datagram's own bytes
};

/// The bytes that an envelope takes: the base of each.
template <size_t Prefix, size_t Trailer>
struct EnvelopeSizes {
  static constexpr size_t kPrefixBytes = Prefix;
  static constexpr size_t kTrailerBytes = Trailer;
  static constexpr size_t kOverhead = Prefix + Trailer;

  /// Bytes that the body of a datagram of at most `datagram` bytes may have.
  static constexpr size_t max_body(size_t datagram) {
    return datagram > kOverhead ? datagram - kOverhead : 0;
  }
};

/// An envelope has sizes, a Sealer and open():
///
/// A Sealer belongs to a burst of datagrams of at most so many bytes in all. seal() completes a
/// datagram in place and returns its bytes: `front` is the prefix's room and what of the body
/// follows it, the pieces are the rest of the body, `trailer` has kTrailerBytes. It may change
/// `front`. The pieces lie in the application's memory, which it must not change; it may point them
/// at as many bytes of its own, which it keeps until clear().
///
/// quoted_incarnation() reads the label in the beginning of a datagram that was sealed here, as an
/// ICMP message quotes it; nothing where that is too short, or the label cannot be read.
///
/// open() checks a datagram that came, and may change its bytes: the buffer is the receiver's. Time
/// spent on what is forged is the receiver's, too, so lengths and labels come before the rest.
template <class E>
concept EnvelopeFormat = requires(typename E::Sealer sealer, const Labels labels, Bytes bytes,
                                  std::span<ConstBytes> pieces) {
  requires E::kOverhead == E::kPrefixBytes + E::kTrailerBytes;
  { E::max_body(size_t{}) } -> std::same_as<size_t>;
  requires std::constructible_from<typename E::Sealer, size_t>;
  { sealer.seal(labels, bytes, pieces, bytes) } -> std::same_as<size_t>;
  sealer.clear();
  { E::open(bytes) } -> std::same_as<OpenedEnvelope>;
  { E::quoted_incarnation(ConstBytes(bytes)) } -> std::same_as<std::optional<uint32_t>>;
};

}  // namespace diwarp::dgram
