// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/zero_copy_tracker.h"

#include "base/serial.h"
#include "rdmap/opcodes.h"

namespace diwarp::rnic {

void ZeroCopyTracker::keep(SendQueue& sends) {
  SendEntry& entry = sends.hand_over();
  if (rdmap::info_of(entry.opcode).responded) return;
  entry.next = nullptr;
  entry.in_flight.release_at = static_cast<uint32_t>(calls_);
  (first_ == nullptr ? first_ : last_->next) = &entry;
  last_ = &entry;
}

bool ZeroCopyTracker::complete_released(llp::Stream& stream, SendQueue& sends) {
  const uint64_t released = stream.zero_copy_released();
  if (released == released_) return false;
  released_ = released;
  const auto is_released = [&](const SendEntry& entry) {
    return !serial_before(static_cast<uint32_t>(released), entry.in_flight.release_at);
  };
  while (first_ != nullptr && is_released(*first_)) {
    SendEntry& done = *first_;
    first_ = done.next;
    sends.answered(done, WcStatus::success);
  }
  return true;
}

}  // namespace diwarp::rnic
