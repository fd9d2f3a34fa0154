// SPDX-License-Identifier: Apache-2.0
#include "common/poller.h"

#include <algorithm>

#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Between two looks after the peer and the user.
constexpr Duration kSpin = milliseconds(1);
/// Longer than what is lost is waited for: what is sent again must find this end awake, since a
/// message that is longer than the socket's buffer does not wait in it.
constexpr Duration kAwake = milliseconds(500);
constexpr Duration kSleep = milliseconds(2);
/// Reading the clock costs about as much as a tenth of an empty poll.
constexpr int kPollsPerClockRead = 16;

}  // namespace

bool Poller::spin(Time until) {
  do {
    for (int i = 0; i < kPollsPerClockRead; ++i) {
      count_ = cq_.poll(completions_);
      if (count_ > 0) return true;
    }
  } while (steady_clock::now() < until);
  return false;
}

void Poller::sleep(Duration limit) { count_ = cq_.poll(completions_, std::min(limit, kSleep)); }

std::span<const WorkCompletion> Poller::next(Time deadline) {
  const Time start = steady_clock::now();
  Time now = start;
  while (!spin(std::min(deadline, now + kSpin))) {
    check_interrupted();
    control_.look();
    now = steady_clock::now();
    if (now >= deadline || control_.pending()) break;
    if (now - start > kAwake) sleep(deadline - now);
    if (count_ > 0) break;
  }
  return found();
}

}  // namespace diwarp::tools
