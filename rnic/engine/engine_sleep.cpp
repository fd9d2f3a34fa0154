// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/engine_sleep.h"

#include <algorithm>
#include <array>

namespace diwarp::rnic {

void EngineSleep::wake() {
  poked_.store(true);
  interrupt();
}

Duration EngineSleep::begin(Time now, Time until, bool all_watched) {
  parked_until_.store(until);
  sleepers_.fetch_add(1);
  const Duration most = all_watched ? Duration::max() : kUnwatchedSleep;
  return std::clamp(until - now, Duration::zero(), most);
}

void EngineSleep::sleep(Duration limit, bool news) {
  std::array<llp::PollEvent, 1> ignored;
  news = poked_.exchange(false) || news;
  if (!news) poller_.wait(ignored, limit);
  sleepers_.fetch_sub(1);
}

}  // namespace diwarp::rnic
