// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/engine_wait.h"

#include <algorithm>
#include <array>

namespace diwarp::rnic {

void EngineWait::wake() {
  poked_.store(true);
  interrupt();
}

Duration EngineWait::begin_wait(Time now, Time until, bool all_watched) {
  wait_until_.store(until);
  waiting_threads_.fetch_add(1);
  const Duration most = all_watched ? Duration::max() : kUnwatchedWait;
  return std::clamp(until - now, Duration::zero(), most);
}

void EngineWait::wait(Duration limit, bool news) {
  std::array<llp::PollEvent, 1> ignored;
  news = poked_.exchange(false) || news;
  if (!news) poller_.wait(ignored, limit);
  waiting_threads_.fetch_sub(1);
}

}  // namespace diwarp::rnic
