// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_reads.h"

#include <algorithm>
#include <new>

namespace diwarp::rnic {

UdRead* UdReads::begin() noexcept try {
  UdRead& read = reads_.acquire_or_make(options_.window, max_ranges_);
  active_.push_back(read);
  ++under_way_;
  return &read;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void UdReads::end(UdRead& read) {
  read.valid.clear();
  active_.remove(read);
  reads_.release(&read);
  --under_way_;
}

Time UdReads::last_sign(UdRead& read) {
  // guard(read-progress): earlier->entry->destination == read.entry->destination => true
  // guard(read-progress): earlier->entry->destination == read.entry->destination => false
  for (UdRead* earlier = active_.front(); earlier != &read; earlier = active_.next(*earlier))
    if (earlier->entry->destination == read.entry->destination)
      read.last_sign = std::max(read.last_sign, earlier->last_sign);
  return read.last_sign;
}

void UdReads::hand_on_sign(UdRead& read) {
  // guard(read-progress): later->entry->destination == read.entry->destination => true
  for (UdRead* later = active_.next(read); later != nullptr; later = active_.next(*later))
    if (later->entry->destination == read.entry->destination)
      later->last_sign = std::max(later->last_sign, read.last_sign);
}

Time UdReads::silent_at(UdRead& read) {
  return std::max(last_sign(read), read.last_try) + read.timeout;
}

Time UdReads::due(UdRead& read) {
  const Time ends = std::min(silent_at(read), read.deadline);
  return read.has_more() ? std::min(ends, read.nudge_due()) : ends;
}

}  // namespace diwarp::rnic
