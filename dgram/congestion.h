// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace diwarp::dgram {

/// The round trip time, as RFC 6298 section 2 estimates it.
class RoundTrip {
 public:
  void add(Duration sample);
  bool measured() const { return smoothed_ != Duration::zero(); }
  Duration smoothed() const { return smoothed_; }
  Duration shortest() const { return shortest_; }
  Duration latest() const { return latest_; }
  /// How long to wait for news before something is sent again.
  Duration timeout() const;
  /// How much later than a later one a datagram may come before it counts as lost (as RFC 8985
  /// section 6.2 and RFC 9002 section 6.1.2 have it: 9/8 round trips after it was sent).
  Duration reordering() const;

 private:
  Duration smoothed_{0};
  Duration deviation_{0};
  Duration shortest_ = Duration::max();
  Duration latest_{0};
};

/// How many datagrams may be under way: CUBIC with its Reno-friendly region (RFC 9438), slow start
/// that ends when the round trip grows (after RFC 9406), all counted in datagrams. Loss detection
/// is the caller's.
class Congestion {
 public:
  static constexpr double kInitialWindow = 10;  // RFC 6928
  static constexpr double kMinWindow = 2;
  static constexpr double kMaxWindow = 4096;

  uint32_t window() const { return static_cast<uint32_t>(window_); }
  bool slow_start() const { return window_ < threshold_; }

  /// `count` datagrams were acknowledged, outside recovery. `limited`: the window was in use.
  void acknowledged(uint32_t count, bool limited, Duration round_trip, Time now);
  /// A round trip was measured.
  void sampled(Duration round_trip);
  /// The datagrams sent at the beginning of this round have been acknowledged: another begins.
  void round_over();
  /// Something was lost: once a round trip.
  void lost(Time now);
  /// Nothing got through for several timeouts.
  void collapsed(Time now);
  /// Nothing was sent for a while, so the path may be another by now.
  void idled();

 private:
  void grow_cubic(uint32_t count, Duration round_trip, Time now);
  void begin_epoch(Time now);
  void reduce();

  double window_ = kInitialWindow;
  double threshold_ = kMaxWindow;
  double highest_ = 0;     // W_max
  double before_ = 0;      // cwnd_prior: at the last reduction
  double inflection_ = 0;  // K, in seconds after epoch_
  double friendly_ = 0;    // W_est
  Time epoch_{};           // when growth after the last reduction began
  Time last_growth_{};
  bool in_epoch_ = false;
  uint16_t samples_ = 0;  // of this round
  Duration round_shortest_ = Duration::max();
  Duration last_round_shortest_ = Duration::max();
};

}  // namespace diwarp::dgram
