// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/serial.h"

namespace diwarp::dgram {

/// Tells from what is acknowledged whether datagrams of some size vanish while smaller ones get
/// through, of which no ICMP message tells: a black hole (RFC 8899 section 4.3, RFC 2923 section
/// 2.1). One datagram is watched, the first of those that are sent again and again, until one as
/// long arrives. Chance must not look like it: with one of twenty lost, a datagram is lost seven
/// times in a row once in 10^9. Owned by a Sender.
class BlackHoleDetector {
 public:
  /// Times in a row that the datagram was sent again.
  static constexpr uint8_t kRepeats = 6;
  /// Times that something smaller got through meanwhile.
  static constexpr uint8_t kProofs = 2;
  /// From so many times on it is worth to ask for such proof.
  static constexpr uint8_t kDoubtful = 2;
  /// Bytes of payload that every path carries, beside all headers, in one packet.
  static constexpr uint32_t kCarriedAnywhere = 400;

  /// A datagram with so many bytes of payload was sent again.
  void resent(uint64_t sequence, uint32_t length) {
    if (length <= kCarriedAnywhere) return;
    const auto number = static_cast<uint32_t>(sequence);
    if (watches() && serial_before(sequence_, number)) return;
    if (!watches() || number != sequence_) watch(number, length);
    if (repeats_ < kSaturated) ++repeats_;
  }
  /// One that is acknowledged arrived.
  void arrived(uint32_t length) {
    // guard(black-hole): condition => false
    if (length >= length_)
      watch(0, 0);
    else
      prove();
  }
  /// A probe was sent, which is small; an acknowledgement came that nothing else came with.
  void probe_sent() { probed_ = true; }
  void acknowledged_alone() {
    if (probed_) prove();
    probed_ = false;
  }
  /// Whether something small should be sent that the peer answers.
  bool doubts() const { return repeats_ >= kDoubtful; }
  /// The payload of the datagrams that vanish, in bytes, once for each black hole.
  std::optional<uint32_t> take() {
    // guard(black-hole): proofs_ < kProofs => false
    if (repeats_ < kRepeats || proofs_ < kProofs) return std::nullopt;
    const uint32_t found = length_;
    watch(0, 0);
    return found;
  }

 private:
  static constexpr uint8_t kSaturated = 127;  // counts go no further

  void watch(uint32_t number, uint32_t length) {
    sequence_ = number;
    length_ = static_cast<uint16_t>(length);
    repeats_ = proofs_ = 0;
  }
  void prove() {
    if (doubts() && proofs_ < kSaturated) ++proofs_;
  }
  bool watches() const { return repeats_ != 0; }

  // Each peer has one, so it is small.
  uint32_t sequence_ = 0;  // modulo 2^32
  uint16_t length_ = 0;    // datagrams have no more than 65,507 bytes
  uint8_t repeats_ = 0;    // 0: no datagram is watched
  uint8_t proofs_ : 7 = 0;
  bool probed_ : 1 = false;
};
static_assert(sizeof(BlackHoleDetector) == 8);

}  // namespace diwarp::dgram
