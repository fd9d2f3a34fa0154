// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/takeover.h"

#include <algorithm>

namespace diwarp::rnic {

namespace {

/// After how much of a timed park its end is put off. The rest is for an application that is held
/// up, and for the longest pause between two steps with which it still drives.
Duration until_extension(Duration park, Duration takeover) {
  return park - std::max(park / 8, takeover / 2);
}

}  // namespace

void Takeover::hand_over() {
  // Either this sees the RNIC thread about to park, or that sees the store.
  last_drive_.store(Time::min());
  if (parked_.load()) end_park();
}

void Takeover::park(const std::atomic<bool>& stop) {
  parked_.store(true);
  park_length_.store(takeover_);
  park_.end_in(takeover_);
  const Time now = clock_.now();
  extend_park_at_.store(now + until_extension(takeover_, takeover_));
  // Either this sees that the application hands over, or stops, or that sees the park.
  if (application_drives(now) && !stop.load()) park_.wait();
  extend_park_at_.store(Time::max());
  parked_.store(false);
}

/// The application steps when it is time to put off the end of the park. Where it had paused
/// before, the RNIC thread is to look instead whether it goes on.
void Takeover::extend_park(Time now, Time last_drive) {
  Time due = extend_park_at_.load();
  if (now < due) return;  // another thread was quicker, or the park has ended
  const Duration last = park_length_.load();
  const Duration longest = std::max(takeover_, limit_);
  const Duration length = last < longest / 2 ? 2 * last : longest;
  const bool drives = follows(now, last_drive);
  const Time next = drives ? now + until_extension(length, takeover_) : Time::max();
  if (!extend_park_at_.compare_exchange_strong(due, next) || !drives) return;
  park_length_.store(length);
  park_.end_in(length);
}

bool Takeover::application_drives(Time now) const {
  const Time last = last_drive_.load();
  return follows(now, last) && last - driving_since_.load() >= takeover_ / 8;
}

}  // namespace diwarp::rnic
