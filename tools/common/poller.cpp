// SPDX-License-Identifier: Apache-2.0
#include "common/poller.h"

#include <algorithm>

#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr Duration kSpin = milliseconds(1);
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

std::span<const WorkCompletion> Poller::next(Time deadline) {
  if (spin(std::min(deadline, steady_clock::now() + kSpin))) return found();
  while (count_ == 0) {
    check_interrupted();
    control_.look();
    const Duration left = deadline - steady_clock::now();
    if (left <= Duration::zero() || control_.pending()) break;
    count_ = cq_.poll(completions_, std::min(left, kSleep));
  }
  return found();
}

}  // namespace diwarp::tools
