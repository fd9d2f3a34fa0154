// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace diwarp::dgram {

/// Spreads transmissions over time, in small bursts: a token bucket. A Sender owns it. Time comes
/// in as an argument.
class Pacer {
 public:
  /// A sender that comes late may send at once what it had missed of this time.
  static constexpr Duration kMostCredit = std::chrono::milliseconds(2);
  /// Datagrams that may follow each other at once, however slow the rate.
  static constexpr uint32_t kLeastBurst = 4;

  /// Datagrams a second; 0: nothing is held back.
  void set_rate(float rate) {
    rate_ = rate;
    interval_ = rate > 0 ? time_of(1) : Duration::zero();
  }
  /// How many may be sent now; UINT32_MAX: as many as one likes.
  uint32_t quota(Time now) {
    if (rate_ <= 0) return UINT32_MAX;
    const Duration burst = std::max<Duration>(kMostCredit, interval_ * (kLeastBurst - 1));
    // The lower bound is for a sender that was late, the upper one for a clock that went back.
    next_ = std::clamp(next_, now - burst, now + burst);
    if (next_ > now) return 0;
    return static_cast<uint32_t>(seconds(now - next_) * rate_) + 1;
  }
  /// One was sent.
  void sent() { next_ += interval_; }
  /// When a small burst may be sent, where there is a rate.
  Time due() const {
    return next_ + time_of(std::min(rate_ * seconds(kMostCredit) / 4, kMostWaited));
  }

 private:
  static constexpr float kMostWaited = 32;  // datagrams that wait to be sent together

  static float seconds(Duration duration) { return std::chrono::duration<float>(duration).count(); }
  Duration time_of(float datagrams) const {
    return Duration(static_cast<int64_t>(datagrams / rate_ * 1e9F));
  }

  float rate_ = 0;
  Duration interval_{0};  // between two datagrams
  Time next_{};           // from then on one more may be sent
};

}  // namespace diwarp::dgram
