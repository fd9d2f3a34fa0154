// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/takeover.h"

#include <algorithm>

namespace diwarp::rnic {

namespace {

/// After how much of a nap it is put off. The rest is for an application that is held up, and for
/// the longest pause between two steps with which it still drives.
Duration until_put_off(Duration nap, Duration takeover) {
  return nap - std::max(nap / 8, takeover / 2);
}

}  // namespace

void Takeover::hand_over() {
  // Either this sees the RNIC thread about to nap, or that sees the store.
  last_drive_.store(Time::min());
  if (napping_.load()) end_nap();
}

void Takeover::nap(const std::atomic<bool>& stop) {
  napping_.store(true);
  nap_length_.store(takeover_);
  nap_.end_in(takeover_);
  const Time now = clock_.now();
  put_off_nap_at_.store(now + until_put_off(takeover_, takeover_));
  // Either this sees that the application hands over, or stops, or that sees the nap.
  if (application_drives(now) && !stop.load()) nap_.sleep();
  put_off_nap_at_.store(Time::max());
  napping_.store(false);
}

/// The application steps when it is time to put the nap off. Where it had paused before, the RNIC
/// thread is to look instead whether it goes on.
void Takeover::put_off_nap(Time now, Time last_drive) {
  Time due = put_off_nap_at_.load();
  if (now < due) return;  // another thread was quicker, or the nap has ended
  const Duration last = nap_length_.load();
  const Duration longest = std::max(takeover_, limit_);
  const Duration length = last < longest / 2 ? 2 * last : longest;
  const bool drives = is_driving(now, last_drive);
  const Time next = drives ? now + until_put_off(length, takeover_) : Time::max();
  if (!put_off_nap_at_.compare_exchange_strong(due, next) || !drives) return;
  nap_length_.store(length);
  nap_.end_in(length);
}

/// A thread that polls without a pause comes back much sooner.
bool Takeover::is_driving(Time now, Time last_drive) const {
  return last_drive != Time::min() && now - last_drive < takeover_ / 2;
}

}  // namespace diwarp::rnic
