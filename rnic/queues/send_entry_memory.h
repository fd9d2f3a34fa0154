// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "diwarp/queue_options.h"
#include "rnic/queues/send_entry.h"

namespace diwarp::rnic {

/// The memory of a send queue's entries, by slots from 0 to depth() - 1, and of the SGEs and inline
/// data of each. It is taken once, under the queue's post lock, and then only read. The send queue
/// owns it.
class SendEntryMemory {
 public:
  explicit SendEntryMemory(const QueuePairCapacity& capacity)
      : depth_(std::bit_ceil(capacity.max_send_wr)),
        room_(std::max(capacity.max_send_sge,
                       static_cast<uint32_t>(1 + (capacity.max_inline_data + sizeof(Sge) - 1) /
                                                     sizeof(Sge)))) {}

  uint32_t depth() const { return depth_; }

  /// False, and nothing is taken, where the memory cannot be had.
  bool take() noexcept {
    std::unique_ptr<SendEntry[]> entries(new (std::nothrow) SendEntry[depth_]);
    std::unique_ptr<Sge[]> sges(new (std::nothrow) Sge[size_t{depth_} * room_]);
    if (!entries || !sges) return false;
    entries_ = std::move(entries);
    sges_ = std::move(sges);
    return true;
  }
  bool is_taken() const { return entries_ != nullptr; }

  // --- Once it is taken.

  SendEntry& operator[](uint64_t slot) { return entries_[slot]; }
  uint32_t slot_of(const SendEntry& entry) const {
    return static_cast<uint32_t>(&entry - entries_.get());
  }
  /// Room for the slot's list, or for one SGE and inline data behind it.
  Sge* room_of(uint32_t slot) { return sges_.get() + size_t{slot} * room_; }

 private:
  const uint32_t depth_;
  const uint32_t room_;  // in SGEs
  std::unique_ptr<SendEntry[]> entries_;
  std::unique_ptr<Sge[]> sges_;  // room_ per entry
};

}  // namespace diwarp::rnic
