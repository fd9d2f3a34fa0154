// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace diwarp {

/// Tokens that come at a rate, up to a number. For one thread.
class TokenBucket {
 public:
  /// `rate`: tokens a second. Begins with `most`.
  TokenBucket(double rate, double most) : rate_(rate), most_(most), tokens_(most) {}

  /// Adds what has come since the last time.
  void refill(Time now) {
    const double elapsed = std::chrono::duration<double>(now - refilled_).count();
    // guard(errors): => tokens_ = tokens_ + elapsed * rate_;
    tokens_ = std::min(most_, tokens_ + elapsed * rate_);
    refilled_ = now;
  }
  double rate() const { return rate_; }
  double tokens() const { return tokens_; }
  /// May leave less than none. Tokens that are put back are negative.
  void spend(double count) { tokens_ -= count; }
  /// When there will be so many again, unless some are spent. The rate is not zero.
  Time ready_at(double count) const {
    const double seconds = std::max(0.0, count - tokens_) / rate_;
    return refilled_ + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9) + 1);
  }

 private:
  double rate_;
  double most_;
  double tokens_;
  Time refilled_{};
};

}  // namespace diwarp
