// SPDX-License-Identifier: Apache-2.0
#include "dgram/scoreboard.h"

#include <algorithm>
#include <cassert>

namespace diwarp::dgram {

void Scoreboard::resend(uint64_t sequence, Time now) {
  TxSlot& again = ring_.at(sequence);
  assert(again.has(TxSlot::lost));
  again.flags = static_cast<uint8_t>((again.flags & TxSlot::given_up) | TxSlot::repeated);
  again.order = ++order_;
  again.sent = now;
  --lost_;
  ++in_flight_;
}

uint64_t Scoreboard::find_lost(uint64_t from, bool urgent) const {
  for (uint64_t at = std::max(from, window_.first_unacknowledged()); at < window_.next(); ++at) {
    const TxSlot& candidate = slot(at);
    if (candidate.has(TxSlot::lost) && (!urgent || candidate.has(TxSlot::urgent))) return at;
  }
  return kNone;
}

void Scoreboard::give_up(const MessageName& message) {
  for (uint64_t at = window_.first_unreleased(); at != window_.next(); ++at) {
    TxSlot& slot = ring_.at(at);
    // guard(dgram): without slot.tag.message == message &&
    if (slot.tag.message == message && !slot.tag.failure) slot.flags |= TxSlot::given_up;
  }
}

void Scoreboard::recall(uint64_t sequence) {
  if (sequence < window_.first_unacknowledged() || sequence >= window_.next()) return;
  TxSlot& recalled = ring_.at(sequence);
  if (recalled.has(TxSlot::came)) return;
  if (!recalled.has(TxSlot::lost)) mark_lost(recalled);
  recalled.flags |= TxSlot::urgent;
}

void Scoreboard::recall_first() {
  if (window_.idle()) return;
  TxSlot& first = ring_.at(window_.first_unacknowledged());
  if (first.has(TxSlot::came)) {
    first.flags = static_cast<uint8_t>(first.flags & ~TxSlot::came);
    --early_;
    ++in_flight_;
  }
  recall(window_.first_unacknowledged());
}

bool Scoreboard::recall_outermost() {
  if (early_ == window_.outstanding()) return false;
  uint64_t first = window_.first_unacknowledged();
  while (slot(first).has(TxSlot::came)) ++first;
  recall(first);
  uint64_t last = window_.next() - 1;
  while (slot(last).has(TxSlot::came)) --last;
  if (last != first) recall(last);
  return true;
}

}  // namespace diwarp::dgram
