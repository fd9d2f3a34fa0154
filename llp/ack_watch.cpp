// SPDX-License-Identifier: Apache-2.0
#include "llp/ack_watch.h"

#include <algorithm>

namespace diwarp::llp {

namespace {

/// How far the time of one answer may differ between two looks: the kernel tells it in ticks.
constexpr Duration kTick = std::chrono::milliseconds(20);

}  // namespace

void AckWatch::start(Time now) {
  since_ = now;
  silence_ = Duration::zero();
  answer_.reset();
}

bool AckWatch::is_silent(const AckState& state, Time now, Duration limit) {
  note_answer(state, now);
  if (!state.outstanding) since_ = now;  // guard(silent-peers)
  // guard(silent-peers): => silence_ = now - since_;
  silence_ = std::min(now - since_, state.since_ack);
  // Segments that find no way out of this host are not counted as retransmitted: of these TCP tells
  // the timeouts alone.
  const uint32_t timeouts = std::max(state.timeouts, timeouts_) - timeouts_;
  const uint32_t tries = state.probes + std::max(timeouts, state.retransmitted - retransmitted_);
  // guard(silent-peers): tries >= kUnansweredTries => tries + 1 != 0
  return silence_ >= limit && tries >= kUnansweredTries;
}

/// A try before the last answer is answered. The first look does not know when that was,
/// and takes what the timer has tried in a row for unanswered.
void AckWatch::note_answer(const AckState& state, Time now) {
  const Time answer = now - state.since_ack;
  if (answer_ && answer <= *answer_ + kTick) return;  // guard(silent-peers)
  timeouts_ = answer_ ? state.timeouts : 0;
  retransmitted_ = state.retransmitted;  // guard(silent-peers)
  answer_ = answer;
}

}  // namespace diwarp::llp
