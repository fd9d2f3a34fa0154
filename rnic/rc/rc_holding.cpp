// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_holding.h"

namespace diwarp::rnic {

void RcHolding::hold(SendQueue& sends) {
  SendEntry& entry = sends.hand_over();
  if (facts_of(entry.opcode).responded) return;
  entry.next = nullptr;
  entry.lent_to = static_cast<uint32_t>(borrowed_);
  (first_ == nullptr ? first_ : last_->next) = &entry;
  last_ = &entry;
}

bool RcHolding::take_back(llp::Stream& stream, SendQueue& sends) {
  const uint64_t released = stream.released();
  if (released == released_) return false;
  released_ = released;
  const auto let_go = [&](const SendEntry& entry) {
    return static_cast<int32_t>(static_cast<uint32_t>(released) - entry.lent_to) >= 0;
  };
  while (first_ != nullptr && let_go(*first_)) {
    SendEntry& done = *first_;
    first_ = done.next;
    sends.answered(done, WcStatus::success);
  }
  return true;
}

}  // namespace diwarp::rnic
