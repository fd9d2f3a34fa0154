// SPDX-License-Identifier: Apache-2.0
#include "dgram/scoreboard.h"

#include <algorithm>
#include <cassert>

namespace diwarp::dgram {

TxSlot& Scoreboard::resend(uint64_t sequence, Time now) {
  TxSlot& again = ring_.at(sequence);
  assert(again.has(TxSlot::lost));
  if (again.has(TxSlot::urgent)) --urgent_;
  again.flags = static_cast<uint8_t>((again.flags & TxSlot::given_up) | TxSlot::repeated);
  again.order = ++order_;
  again.sent = now;
  lost_.remove(ring_, sequence);
  in_flight_.push_back(ring_, sequence);
  return again;
}

void Scoreboard::clock_went_back(Time now) {
  for (uint64_t at = first_in_flight(); at != kNone; at = next_in_flight(at)) {
    TxSlot& slot = ring_.at(at);
    if (slot.sent <= now) continue;
    slot.sent = now;
    slot.flags |= TxSlot::repeated;
  }
}

/// `from` or the next lost one that is.
uint64_t Scoreboard::next_urgent(uint64_t from, bool urgent) const {
  if (!urgent) return from;
  if (urgent_ == 0) return kNone;
  uint64_t at = from;
  while (!slot(at).has(TxSlot::urgent)) {
    if (is_last(lost_, at)) return kNone;
    at = number(slot(at).next);
  }
  return at;
}

void Scoreboard::mark_lost(uint64_t sequence) {
  in_flight_.remove(ring_, sequence);
  lost_.push_back(ring_, sequence);
  ring_.at(sequence).flags |= TxSlot::lost;
}

void Scoreboard::mark_arrived(uint64_t sequence) {
  TxSlot& slot = ring_.at(sequence);
  (slot.has(TxSlot::lost) ? lost_ : in_flight_).remove(ring_, sequence);
  if (slot.has(TxSlot::urgent)) --urgent_;
  constexpr uint8_t kKept = TxSlot::repeated | TxSlot::given_up;
  slot.flags = static_cast<uint8_t>((slot.flags & kKept) | TxSlot::came);
  ring_.set_came(sequence, true);
}

void Scoreboard::give_up(const MessageName& message) {
  for (uint64_t at = window_.first_unreleased(); at != window_.next(); ++at) {
    TxSlot& slot = ring_.at(at);
    // guard(dgram): without slot.tag.message == message &&
    if (slot.tag.message == message && !slot.tag.failure) slot.flags |= TxSlot::given_up;
  }
}

void Scoreboard::recall(uint64_t sequence, uint8_t cause) {
  if (sequence < window_.first_unacknowledged() || sequence >= window_.next()) return;
  TxSlot& recalled = ring_.at(sequence);
  if (recalled.has(TxSlot::came)) return;
  if (!recalled.has(TxSlot::lost)) mark_lost(sequence);
  if (!recalled.has(TxSlot::urgent)) ++urgent_;
  recalled.flags = static_cast<uint8_t>(recalled.flags | TxSlot::urgent | cause);
}

void Scoreboard::recall_first() {
  if (window_.idle()) return;
  const uint64_t sequence = window_.first_unacknowledged();
  TxSlot& first = ring_.at(sequence);
  if (first.has(TxSlot::came)) {
    first.flags = static_cast<uint8_t>(first.flags & ~TxSlot::came);
    ring_.set_came(sequence, false);
    --early_;
    in_flight_.push_back(ring_, sequence);
  }
  recall(sequence);
}

bool Scoreboard::recall_outermost() {
  if (early_ == window_.outstanding()) return false;
  uint64_t first = window_.first_unacknowledged();
  while (slot(first).has(TxSlot::came)) ++first;
  recall(first, TxSlot::probing);
  uint64_t last = window_.next() - 1;
  while (slot(last).has(TxSlot::came)) --last;
  if (last != first) recall(last, TxSlot::probing);
  return true;
}

}  // namespace diwarp::dgram
