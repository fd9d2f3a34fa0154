// SPDX-License-Identifier: Apache-2.0
#include "ddp/closed_messages.h"

#include <algorithm>
#include <iterator>

namespace diwarp::ddp {

/// Index of the first run that does not end before `msn`: the one that holds it, or the next.
size_t ClosedMessages::run_reaching(uint32_t msn) const {
  if (runs_.empty() || place(runs_.back().last) < place(msn)) return runs_.size();
  const auto ends_before = [this](const Run& run, uint32_t value) {
    return place(run.last) < place(value);
  };
  const auto found = std::lower_bound(runs_.begin(), runs_.end(), msn, ends_before);
  return static_cast<size_t>(found - runs_.begin());
}

bool ClosedMessages::contains(uint32_t msn) const {
  if (at_or_below_floor(msn)) return true;
  const size_t at = run_reaching(msn);
  return at != runs_.size() && place(runs_[at].first) <= place(msn);
}

bool ClosedMessages::close(uint32_t msn) {
  if (at_or_below_floor(msn)) return false;
  if (runs_.empty() && !has_floor_) anchor_ = msn;
  const size_t at = run_reaching(msn);
  if (at != runs_.size() && place(runs_[at].first) <= place(msn)) return false;
  add(at, msn);
  if (++remembered_ > limit_) forget_oldest();
  return true;
}

/// Puts `msn` between the runs before `position` and the one there, and joins what it touches.
void ClosedMessages::add(size_t position, uint32_t msn) {
  const auto next = runs_.begin() + static_cast<std::ptrdiff_t>(position);
  const bool joins_next = next != runs_.end() && next->first == msn + 1;
  const bool joins_previous = next != runs_.begin() && std::prev(next)->last + 1 == msn;
  if (joins_previous && joins_next) {
    std::prev(next)->last = next->last;
    runs_.erase(next);
  } else if (joins_previous) {
    std::prev(next)->last = msn;
  } else if (joins_next) {
    next->first = msn;
  } else {
    runs_.insert(next, {msn, msn});
  }
}

void ClosedMessages::forget_oldest() {
  Run& oldest = runs_.front();
  has_floor_ = true;
  floor_ = anchor_ = oldest.first;
  if (oldest.first++ == oldest.last) runs_.erase(runs_.begin());
  --remembered_;
  // What lies half the number circle or more ahead is now at or below the floor. That can only come
  // from before there was a floor, and from a source whose MSNs leap.
  while (!runs_.empty() && at_or_below_floor(runs_.back().last)) forget_newest();
}

void ClosedMessages::forget_newest() {
  Run& newest = runs_.back();
  if (newest.last-- == newest.first) runs_.pop_back();
  --remembered_;
}

}  // namespace diwarp::ddp
