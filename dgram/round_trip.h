// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

namespace diwarp::dgram {

/// The round trip time, as RFC 6298 section 2 estimates it.
class RoundTrip {
 public:
  void add(Duration sample);
  bool measured() const { return smoothed_ != Duration::zero(); }
  Duration smoothed() const { return smoothed_; }
  Duration shortest() const { return shortest_; }
  /// How long to wait for news before something is sent again.
  Duration timeout() const;

 private:
  Duration smoothed_{0};
  Duration deviation_{0};
  Duration shortest_ = Duration::max();
};

}  // namespace diwarp::dgram
