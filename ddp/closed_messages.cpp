// SPDX-License-Identifier: Apache-2.0
#include "ddp/closed_messages.h"

#include <algorithm>
#include <iterator>

namespace diwarp::ddp {

namespace {

/// Messages of a refused run at most: a quarter of the number circle.
constexpr uint32_t kLongestRun = 1U << 30;

}  // namespace

/// Index of the first run that does not end before `msn`: the one that holds it, or the next.
size_t ClosedMessages::run_reaching(uint32_t msn) const {
  if (runs_.empty() || place(runs_.back().last) < place(msn)) return runs_.size();
  const auto ends_before = [this](const Run& run, uint32_t value) {
    return place(run.last) < place(value);
  };
  const auto found = std::lower_bound(runs_.begin(), runs_.end(), msn, ends_before);
  return static_cast<size_t>(found - runs_.begin());
}

bool ClosedMessages::is_accepted(uint32_t msn) const {
  if (at_or_below_floor(msn)) return true;  // guard(closed)
  const size_t at = run_reaching(msn);
  // guard(closed): => return false;
  return at != runs_.size() && place(runs_[at].first) <= place(msn);
}

bool ClosedMessages::is_refused(uint32_t msn) const {
  return std::any_of(refused_.begin(), refused_.end(),
                     [msn](const Run& run) { return msn - run.first <= run.last - run.first; });
}

/// Whether `msn` goes on with the newest run: it is above all that was accepted.
bool ClosedMessages::continues_newest(uint32_t msn) const {
  return !runs_.empty() && runs_.back().last + 1 == msn && place(runs_.back().last) < place(msn);
}

bool ClosedMessages::close(uint32_t msn) noexcept {
  if (continues_newest(msn)) {  // in order, as most are
    runs_.back().last = msn;
    if (++remembered_ > limit_) forget_oldest();  // guard(closed): => ++remembered_;
    return true;
  }
  if (is_accepted(msn)) return false;
  if (runs_.empty() && !has_floor_) anchor_ = msn;
  while (!add(run_reaching(msn), msn)) {
    forget_oldest_run();
    if (at_or_below_floor(msn)) return true;
  }
  if (++remembered_ > limit_) forget_oldest();  // guard(closed): => ++remembered_;
  return true;
}

/// Puts `msn` between the runs before `position` and the one there, and joins what it touches.
/// False, and nothing changed, if that takes memory which cannot be had.
bool ClosedMessages::add(size_t position, uint32_t msn) {
  Run* const next = runs_.begin() + position;
  const bool joins_next = position != runs_.size() && next->first == msn + 1;
  const bool joins_previous = position != 0 && std::prev(next)->last + 1 == msn;
  if (joins_previous && joins_next) {
    std::prev(next)->last = next->last;
    runs_.erase(position);
  } else if (joins_previous) {
    std::prev(next)->last = msn;
  } else if (joins_next) {
    next->first = msn;
  } else {
    return runs_.insert(position, {msn, msn});
  }
  return true;
}

void ClosedMessages::forget_oldest() {
  Run& oldest = runs_.front();
  const uint32_t msn = oldest.first;
  if (oldest.first++ == oldest.last) runs_.erase(0);
  --remembered_;
  raise_floor(msn);
}

void ClosedMessages::forget_oldest_run() {
  const Run oldest = runs_.front();
  runs_.erase(0);
  remembered_ -= oldest.last - oldest.first + 1;
  raise_floor(oldest.last);
}

void ClosedMessages::raise_floor(uint32_t msn) {
  has_floor_ = true;
  floor_ = anchor_ = msn;
  // A message half the number circle or more ahead is now at or below the floor. That can only come
  // from before there was a floor, and from a source whose MSNs leap.
  while (!runs_.empty() && at_or_below_floor(runs_.back().last)) forget_newest();  // guard(closed)
  // A refused run must not be met again when the numbers have gone round.
  for (size_t i = refused_.size(); i-- != 0;)
    if (at_or_below_floor(refused_[i].last)) refused_.erase(i);  // guard(closed)
}

void ClosedMessages::forget_newest() {
  Run& newest = runs_.back();
  if (newest.last-- == newest.first) runs_.pop_back();
  --remembered_;
}

void ClosedMessages::refuse(uint32_t msn, bool frugal) noexcept {
  if (is_accepted(msn) || join_refused(msn)) return;
  const size_t most = frugal ? std::min<size_t>(refused_limit_, kFreeRuns) : refused_limit_;
  while (refused_.size() >= most) refused_.erase(0);  // guard(closed)
  while (!refused_.push_back({msn, msn})) refused_.erase(0);
}

/// True if `msn` follows, or precedes, what a run has.
bool ClosedMessages::join_refused(uint32_t msn) {
  for (Run& run : refused_) {
    if (run.last + 1 == msn)
      run.last = msn;
    else if (run.first == msn + 1)
      run.first = msn;
    else
      continue;
    if (run.last - run.first > kLongestRun) run.first = run.last - kLongestRun;
    return true;
  }
  return false;
}

}  // namespace diwarp::ddp
