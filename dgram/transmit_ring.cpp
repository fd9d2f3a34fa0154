// SPDX-License-Identifier: Apache-2.0
#include "dgram/transmit_ring.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace diwarp::dgram {

/// Bytes that so many slots count to a budget.
size_t TransmitRing::counted(uint32_t capacity) {
  if (capacity <= kUncounted) return 0;
  return capacity * sizeof(TxSlot) + words(capacity) * sizeof(uint64_t);
}

TransmitRing& TransmitRing::operator=(TransmitRing&& other) noexcept {
  TransmitRing taken(std::move(other));
  swap(taken);
  return *this;
}

TransmitRing::~TransmitRing() {
  if (budget_ != nullptr) budget_->give_back(counted(capacity_));
}

void TransmitRing::swap(TransmitRing& other) noexcept {
  std::swap(slots_, other.slots_);
  std::swap(came_, other.came_);
  std::swap(capacity_, other.capacity_);
  std::swap(budget_, other.budget_);
}

bool TransmitRing::grow(uint64_t first, uint64_t end, uint64_t count, MemoryBudget* budget) {
  const auto wanted = static_cast<uint32_t>(std::bit_ceil(std::max<uint64_t>(count, kUncounted)));
  if (budget != nullptr && !budget->take(counted(wanted))) return false;
  TransmitRing larger;
  larger.budget_ = budget;
  larger.capacity_ = wanted;
  larger.slots_.reset(new (std::nothrow) TxSlot[wanted]);
  larger.came_.reset(new (std::nothrow) uint64_t[words(wanted)]());
  if (!larger.slots_ || !larger.came_) return false;
  for (uint64_t at = first; at != end; ++at) {
    larger.at(at) = this->at(at);
    larger.set_came(at, this->at(at).has(TxSlot::came));
  }
  swap(larger);
  return true;
}

}  // namespace diwarp::dgram
