// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "dgram/rd_header.h"
#include "dgram/sequence_window.h"
#include "dgram/transmit_ring.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

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
  uint32_t in_flight() const { return in_flight_; }
  uint32_t lost() const { return lost_; }
  /// Came, and not acknowledged for good.
  uint32_t early() const { return early_; }

  /// Of a datagram that was sent and is not released; so are those of tag() and is_skip().
  const TxSlot& slot(uint64_t sequence) const { return ring_.at(sequence); }
  const TxTag& tag(uint64_t sequence) const { return slot(sequence).tag; }
  /// Whether a skip stands for it now.
  bool is_skip(uint64_t sequence) const { return slot(sequence).has(TxSlot::given_up); }

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

  /// next() was sent; prepared for.
  void add(const TxTag& tag, uint8_t flags, Time now) {
    ring_.at(window_.next()) = {.tag = tag, .flags = flags, .order = ++order_, .sent = now};
    window_.sent();
    ++in_flight_;
  }
  /// A lost one was sent again.
  void resend(uint64_t sequence, Time now);
  /// The first lost one from `from` on; `urgent`: of those that were recalled. kNone: there is
  /// none.
  uint64_t next_lost(uint64_t from, bool urgent) const {
    return lost_ == 0 ? kNone : find_lost(from, urgent);
  }
  /// One in flight counts as lost.
  void lose(uint64_t sequence) { mark_lost(ring_.at(sequence)); }

  // --- What stands for a number.

  /// The message ends: skips stand for its datagrams from now on.
  void give_up(const MessageName& message);
  /// The datagram is to be sent again at once, in whatever form, unless it came.
  void recall(uint64_t sequence);
  /// The first that is not acknowledged is to be sent again at once, even if it came.
  void recall_first();
  /// The first missing one is to be sent again at once, which makes progress, and the last one,
  /// which tells about all between. False: none is missing.
  bool recall_outermost();

  // --- What the peer says.

  /// All up to `last` came, and what `map`, if there is one, says. All of them were sent. The peer
  /// has a window for so many after `last`. Calls `arrived` with the slot of each one of which that
  /// was not known, as it was before.
  template <class Arrived>
  void acknowledge(uint64_t last, uint16_t window, const RdMap* map, Arrived&& arrived) {
    window_.open(last, window);
    for (; window_.first_unacknowledged() <= last; window_.acknowledged()) {
      TxSlot& slot = ring_.at(window_.first_unacknowledged());
      if (slot.has(TxSlot::came)) {
        --early_;
      } else {
        arrived(std::as_const(slot));
        mark_arrived(slot);
      }
    }
    const size_t size = map == nullptr ? 0 : map->size();
    for (size_t bit = 0; bit < size; ++bit) {
      if (!map->test(bit)) continue;
      TxSlot& slot = ring_.at(last + 1 + bit);
      if (slot.has(TxSlot::came)) continue;
      arrived(std::as_const(slot));
      mark_arrived(slot);
      ++early_;
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
  uint64_t find_lost(uint64_t from, bool urgent) const;
  void mark_lost(TxSlot& slot) {
    slot.flags |= TxSlot::lost;
    ++lost_;
    --in_flight_;
  }
  void mark_arrived(TxSlot& slot) {
    --(slot.has(TxSlot::lost) ? lost_ : in_flight_);
    slot.flags =
        static_cast<uint8_t>((slot.flags & (TxSlot::repeated | TxSlot::given_up)) | TxSlot::came);
  }

  TransmitRing ring_;
  SequenceWindow window_;
  uint32_t in_flight_ = 0;
  uint32_t lost_ = 0;
  uint32_t early_ = 0;
  uint32_t order_ = 0;  // of the latest transmission
};

}  // namespace diwarp::dgram
