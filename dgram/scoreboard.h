// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "dgram/rd_header.h"
#include "dgram/sequence_window.h"
#include "dgram/transmit_list.h"
#include "dgram/transmit_ring.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

/// Why a datagram is sent.
enum class TransmissionCause : uint8_t {
  first,     ///< for the first time
  lost,      ///< its last transmission was found lost
  probe,     ///< nothing was heard for long
  recalled,  ///< the peer refuses it, or it seems too long for the path
};

/// What became of each datagram that was sent, as RFC 6675's scoreboard keeps it of bytes, and what
/// stands for its number now. A number stands for the same part of the same message for ever; once
/// its message is given up, it is sent again as a skip that names the message. Of what is
/// outstanding, each datagram came early, is lost or is in flight, and is counted as such. Memory
/// grows with what is not released and is kept until release_memory(). Owned by a Sender: it alone
/// adds, resends, acknowledges and loses.
class Scoreboard {
 public:
  /// A sequence number that none has.
  static constexpr uint64_t kNone = UINT64_MAX;

  explicit Scoreboard(uint64_t first = 1, uint16_t window = 0) : window_(first, window) {}

  const SequenceWindow& window() const { return window_; }
  /// Under way, as far as is known.
  uint32_t in_flight() const { return in_flight_.size(); }
  uint32_t lost() const { return lost_.size(); }
  /// Came, and not acknowledged for good.
  uint32_t early() const { return early_; }

  /// Of a datagram that was sent and is not released; so are those of tag() and is_skip().
  const TxSlot& slot(uint64_t sequence) const { return ring_.at(sequence); }
  const TxTag& tag(uint64_t sequence) const { return slot(sequence).tag; }
  /// Whether a skip stands for it now.
  bool is_skip(uint64_t sequence) const { return slot(sequence).has(TxSlot::given_up); }

  /// Of a datagram that is not sent yet, or lost.
  TransmissionCause cause(uint64_t sequence) const {
    if (sequence == window_.next()) return TransmissionCause::first;
    if (slot(sequence).has(TxSlot::probing)) return TransmissionCause::probe;
    return slot(sequence).has(TxSlot::urgent) ? TransmissionCause::recalled
                                              : TransmissionCause::lost;
  }

  // --- Memory.

  /// Takes memory for `count` more datagrams. False where it cannot be had. What TransmitRing
  /// counts goes to `budget`, if there is one, which must outlive this.
  bool prepare(uint32_t count = 1, MemoryBudget* budget = nullptr) {
    const uint64_t needed = window_.unreleased() + count;
    return needed <= SequenceWindow::kCapacity &&
           ring_.reserve(window_.first_unreleased(), window_.next(), needed, budget);
  }
  /// Where nothing is outstanding or unreleased.
  void release_memory() {
    if (window_.unreleased() == 0) ring_ = TransmitRing();
  }
  /// Whether release_memory() would give some back.
  bool has_spare_memory() const { return ring_.capacity() != 0 && window_.unreleased() == 0; }

  // --- What is sent.

  /// next() was sent; prepared for. Returns its slot.
  TxSlot& add(const TxTag& tag, uint8_t flags, Time now) {
    const uint64_t sequence = window_.next();
    TxSlot& slot = ring_.at(sequence);
    slot = {.tag = tag, .flags = flags, .order = ++order_, .sent = now};
    ring_.set_came(sequence, false);
    window_.sent();
    in_flight_.push_back(ring_, sequence);
    return slot;
  }
  /// A lost one was sent again. Returns its slot.
  TxSlot& resend(uint64_t sequence, Time now);
  /// The lost ones, in the order in which they were found lost; `urgent`: of those that were
  /// recalled. kNone: there is none, or no more.
  uint64_t first_lost(bool urgent) const {
    return lost_.size() == 0 ? kNone : next_urgent(number(lost_.first()), urgent);
  }
  uint64_t next_lost(uint64_t after, bool urgent) const {
    return is_last(lost_, after) ? kNone : next_urgent(number(slot(after).next), urgent);
  }
  /// Those in flight, in the order of their transmissions.
  uint64_t first_in_flight() const {
    return in_flight_.size() == 0 ? kNone : number(in_flight_.first());
  }
  uint64_t next_in_flight(uint64_t after) const {
    return is_last(in_flight_, after) ? kNone : number(slot(after).next);
  }
  /// The clock went back: those in flight count as sent now, and tell no round trip.
  void clock_went_back(Time now);
  /// One in flight counts as lost.
  void lose(uint64_t sequence) { mark_lost(sequence); }

  // --- What stands for a number.

  /// The message ends: skips stand for its datagrams from now on.
  void give_up(const MessageName& message);
  /// The datagram is to be sent again at once, in whatever form, unless it came.
  void recall(uint64_t sequence, uint8_t cause = 0);
  /// The first that is not acknowledged is to be sent again at once, even if it came.
  void recall_first();
  /// The first missing one is to be sent again at once, which makes progress, and the last one,
  /// which tells about all between. False: none is missing.
  bool recall_outermost();

  // --- What the peer says.

  /// The peer acknowledges all up to `last`, and by the map some after it, none of which are beyond
  /// what was sent; it has a window for `window` after `last`. `map` may be null. Calls
  /// arrived(sequence, slot) for each one that was not known to have come, as it was before.
  template <class Arrived>
  void acknowledge(uint64_t last, uint16_t window, const RdMap* map, Arrived&& arrived) {
    window_.open(last, window);
    for (; window_.first_unacknowledged() <= last; window_.acknowledged()) {
      const uint64_t sequence = window_.first_unacknowledged();
      const TxSlot& slot = ring_.at(sequence);
      if (slot.has(TxSlot::came)) {
        --early_;
      } else {
        arrived(sequence, slot);
        mark_arrived(sequence);
      }
    }
    // Not those without a bit: what they are about may not have been sent, and there may be no
    // ring.
    const size_t words = map == nullptr ? 0 : (map->size() + 63) / 64;
    for (size_t word = 0; word < words; ++word) {
      const uint64_t begin = last + 1 + word * 64;
      for (uint64_t fresh = map->words[word] & ~ring_.came(begin); fresh != 0;) {
        const int bit = std::countl_zero(fresh);
        fresh &= ~(uint64_t{1} << (63 - bit));
        const uint64_t sequence = begin + static_cast<uint64_t>(bit);
        arrived(sequence, std::as_const(ring_.at(sequence)));
        mark_arrived(sequence);
        ++early_;
      }
    }
  }
  struct Released {
    TxTag tag;
    bool given_up = false;  ///< its message was: the peer delivered it, or a skip
  };
  /// Hands out what is acknowledged for good, in order, each once.
  std::optional<Released> release() {
    if (window_.first_unreleased() == window_.first_unacknowledged()) return std::nullopt;
    const TxSlot& oldest = slot(window_.first_unreleased());
    window_.released();
    return Released{.tag = oldest.tag, .given_up = oldest.has(TxSlot::given_up)};
  }

 private:
  /// The number whose low bits these are.
  uint64_t number(uint16_t low) const {
    const uint64_t first = window_.first_unacknowledged();
    return first + static_cast<uint16_t>(low - static_cast<uint16_t>(first));
  }
  static bool is_last(const TransmitList& list, uint64_t sequence) {
    return list.size() == 0 || list.last() == static_cast<uint16_t>(sequence);
  }
  uint64_t next_urgent(uint64_t from, bool urgent) const;
  void mark_lost(uint64_t sequence);
  void mark_arrived(uint64_t sequence);

  TransmitRing ring_;
  SequenceWindow window_;
  TransmitList in_flight_;
  TransmitList lost_;
  uint32_t early_ = 0;
  uint32_t urgent_ = 0;  // of the lost ones
  uint32_t order_ = 0;   // of the latest transmission
};

}  // namespace diwarp::dgram
