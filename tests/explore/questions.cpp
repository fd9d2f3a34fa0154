// SPDX-License-Identifier: Apache-2.0
#include "questions.h"

namespace diwarp::explore {

Questions::Answer Questions::ask_fate() {
  alternatives_.clear();
  add_fates();
  add_events();
  const Answer& chosen = ask();
  if (!chosen.event) ++asked_datagrams_;
  return chosen;
}

std::optional<Event> Questions::ask_event() {
  alternatives_.assign(1, {});
  add_events();
  if (alternatives_.size() == 1) return std::nullopt;
  return ask().event;
}

void Questions::happens(const Event& event) {
  std::erase_if(events_, [&](const Event& one) {
    return one.kind == event.kind && one.side == event.side && one.operation == event.operation;
  });
}

void Questions::add_fates() {
  alternatives_.push_back({});
  for (size_t i = 1; i < kFates; ++i) {
    const auto fate = static_cast<Fate>(i);
    // With nothing else on the wire these are the same as others.
    const bool differs = (fate != Fate::swap && fate != Fate::outage) || wire_.more();
    if (differs && (depth_.fates >> i & 1) != 0)
      alternatives_.push_back({.event = {}, .fate = fate});
  }
}

void Questions::add_events() {
  for (const Event& event : events_)
    if (may_happen(event)) alternatives_.push_back({.event = event});
}

/// Requests are posted in their order.
bool Questions::may_happen(const Event& event) const {
  return event.kind != EventKind::post || event.operation == ends_.next_operation(event.side);
}

const Questions::Answer& Questions::ask() {
  return alternatives_[choices_.choose(static_cast<uint32_t>(alternatives_.size()))];
}

}  // namespace diwarp::explore
