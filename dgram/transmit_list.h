// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>

#include "dgram/transmit_ring.h"

namespace diwarp::dgram {

/// A list of slots of a TransmitRing, in the order in which they were added. A slot is on one list
/// at most. The links are the low 16 bits of the slots' numbers, of which fewer than 65,536 are in
/// use at a time, so that a ring may grow. Owned by a Scoreboard.
class TransmitList {
 public:
  uint32_t size() const { return size_; }

  /// Of one that is not empty: the low bits of the first number, and of the last.
  uint16_t first() const { return first_; }
  uint16_t last() const { return last_; }

  void push_back(const TransmitRing& ring, uint64_t sequence) {
    const auto added = static_cast<uint16_t>(sequence);
    if (size_++ == 0) {
      first_ = added;
    } else {
      ring.at(last_).next = added;
      ring.at(added).previous = last_;
    }
    last_ = added;
  }
  void remove(const TransmitRing& ring, uint64_t sequence) {
    assert(size_ != 0);
    const auto removed = static_cast<uint16_t>(sequence);
    const TxSlot& slot = ring.at(removed);
    if (removed == first_)
      first_ = slot.next;
    else
      ring.at(slot.previous).next = slot.next;
    if (removed == last_)
      last_ = slot.previous;
    else
      ring.at(slot.next).previous = slot.previous;
    --size_;
  }

 private:
  uint16_t first_ = 0;
  uint16_t last_ = 0;
  uint32_t size_ = 0;
};

}  // namespace diwarp::dgram
