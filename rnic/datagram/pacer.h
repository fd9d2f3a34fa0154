// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace diwarp::rnic {

/// A token bucket in bytes. Lets through, at once, what the rate gives in one millisecond; a single
/// datagram may overdraw it.
class Pacer {
 public:
  /// Bytes a second; 0: no limit.
  void set_rate(uint64_t rate, Time now) {
    rate_ = static_cast<double>(rate);
    tokens_ = burst();
    refilled_ = now;
  }
  bool limited() const { return rate_ > 0; }

  void refill(Time now) {
    const double elapsed = std::chrono::duration<double>(now - refilled_).count();
    tokens_ = std::min(burst(), tokens_ + elapsed * rate_);
    refilled_ = now;
  }
  bool may_send() const { return !limited() || tokens_ > 0; }
  void spend(size_t bytes) {
    if (limited()) tokens_ -= static_cast<double>(bytes);
  }
  void refund(size_t bytes) {
    if (limited()) tokens_ += static_cast<double>(bytes);
  }
  /// When there will be tokens again.
  Time ready_at() const {
    const double seconds = std::max(0.0, 1.0 - tokens_) / rate_;
    return refilled_ + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9) + 1);
  }

 private:
  double burst() const { return std::max(1.0, rate_ / 1000); }

  double rate_ = 0;
  double tokens_ = 0;
  Time refilled_{};
};

}  // namespace diwarp::rnic
