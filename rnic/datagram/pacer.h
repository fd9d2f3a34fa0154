// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/token_bucket.h"

namespace diwarp::rnic {

/// Lets bytes through at a rate: at once, as many as it gives in one millisecond; a single datagram
/// may overdraw that.
class Pacer {
 public:
  /// Bytes a second; 0: no limit.
  void set_rate(uint64_t rate, Time now) {
    const auto bytes = static_cast<double>(rate);
    bucket_ = TokenBucket(bytes, std::max(1.0, bytes / 1000));
    bucket_.refill(now);
  }
  bool limited() const { return bucket_.rate() != 0; }

  void refill(Time now) { bucket_.refill(now); }
  bool may_send() const { return !limited() || bucket_.tokens() > 0; }
  void spend(size_t bytes) {
    if (limited()) bucket_.spend(static_cast<double>(bytes));
  }
  void refund(size_t bytes) {
    if (limited()) bucket_.spend(-static_cast<double>(bytes));
  }
  /// When there will be tokens again.
  Time ready_at() const { return bucket_.ready_at(1.0); }

 private:
  TokenBucket bucket_{0, 1};
};

}  // namespace diwarp::rnic
