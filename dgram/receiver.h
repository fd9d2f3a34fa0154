// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "dgram/rd_header.h"
#include "dgram/reorder_buffer.h"

namespace diwarp::dgram {

/// The receiving half of an association: which datagram is next, which came early, and what to say
/// of that. Sequence numbers are 64 bits wide here and never wrap. The datagrams that are kept are
/// the owner's; here they are only remembered, in a list that is made when the first is kept, grows
/// with the distance of those that are, and counts to the buffer until release_memory().
class Receiver {
 public:
  static constexpr uint32_t kMaxWindow = 32768;

  /// `window`: how many datagrams may be kept, 1 to kMaxWindow.
  explicit Receiver(uint32_t window, uint64_t first = 1)
      : window_(static_cast<uint16_t>(window)), next_(first), highest_(first), edge_(first) {}

  enum class Arrival : uint8_t {
    next,       ///< may be delivered now
    early,      ///< may be kept
    duplicate,  ///< was delivered, or is kept
    outside,    ///< of the window
  };
  /// Checks a sequenced datagram, and asks for an acknowledgement where it is due.
  Arrival arrived(uint32_t sequence);

  uint64_t next() const { return next_; }
  /// next() was delivered.
  void delivered() {
    ++next_;
    if (highest_ < next_) highest_ = next_;
  }
  /// The number of a datagram that arrived() called next or early.
  uint64_t number(uint32_t sequence) const { return rd_extend(sequence, next_); }
  /// It is kept. False where memory cannot be had.
  bool keep(uint64_t number, BufferedDatagram* kept, ReorderBuffer& buffer, BufferShare& share);
  /// Hands out what is kept as next(), which is then the caller's to deliver or to keep again; null
  /// where nothing is.
  BufferedDatagram* take_next() { return kept_ == 0 ? nullptr : take_at(next_); }
  /// Hands out what is kept, from the last one on, so that each place is looked at once; null when
  /// nothing is left.
  BufferedDatagram* take_any();
  uint32_t kept() const { return kept_; }
  /// The bound of these.
  uint32_t most_kept() const { return window_; }
  /// Whether next() is kept.
  bool keeps_next() const { return kept_ != 0 && ring_[next_ & (capacity_ - 1)] != nullptr; }

  // --- Acknowledging.

  uint32_t acknowledged() const { return static_cast<uint32_t>(next_ - 1); }
  /// The peer told such a window. One that is wider than a short map is this version's: it reads
  /// long ones.
  void peer_told(uint16_t window) {
    if (window > kRdShortMapWords * 64) long_maps_ = true;
  }
  /// The datagrams that are kept, from next() on, as far as the peer reads them.
  RdMap map() const;
  /// The window to tell, where there is memory to keep `room` more datagrams. A window that was
  /// once told stands.
  uint16_t window(uint32_t room);

  enum class Due : uint8_t { nothing, soon, now };
  Due due() const {
    return urgent_ || unacknowledged_ >= 2 ? Due::now
           : unacknowledged_ != 0          ? Due::soon
                                           : Due::nothing;
  }
  void ask_now() { urgent_ = true; }
  /// acknowledged() was told; with `map` also the rest.
  void told(bool map) {
    unacknowledged_ = 0;
    if (map || kept_ == 0) urgent_ = false;
  }

  /// Gives the list's memory back to the buffer that it counts to. Nothing may be kept.
  void release_memory(ReorderBuffer& buffer, BufferShare& share);
  /// Whether release_memory() would give some back, and may be called.
  bool has_spare_memory() const { return capacity_ != 0 && kept_ == 0; }

 private:
  static size_t words(uint32_t capacity) { return (capacity + 63) / 64; }
  static size_t bytes_of(uint32_t capacity) {
    return capacity * sizeof(BufferedDatagram*) + words(capacity) * sizeof(uint64_t);
  }
  uint64_t& word_of(uint64_t number) const { return bits_[number / 64 & (words(capacity_) - 1)]; }
  void flip(uint64_t number) { word_of(number) ^= uint64_t{1} << (63 - number % 64); }
  BufferedDatagram* take_at(uint64_t number);
  bool reserve(uint64_t places, ReorderBuffer& buffer, BufferShare& share);

  uint16_t window_;
  bool urgent_ = false;
  bool long_maps_ = false;  // the peer reads them
  uint32_t kept_ = 0;
  uint32_t capacity_ = 0;
  uint32_t unacknowledged_ = 0;
  uint64_t next_;
  uint64_t highest_;  // above all that are kept; not below next_
  uint64_t edge_;     // the first that no window was told for
  // At their number, modulo capacity_; and a bit for each that is kept, the first in the highest
  // bit of a word, so that map() copies words.
  std::unique_ptr<BufferedDatagram*[]> ring_;
  std::unique_ptr<uint64_t[]> bits_;
};

}  // namespace diwarp::dgram
