// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "dgram/congestion_controller.h"
#include "dgram/round.h"

namespace diwarp::dgram {

/// How many datagrams may be under way: CUBIC with its Reno-friendly region (RFC 9438), slow start
/// that ends when the round trip grows (after RFC 9406). Any loss is a full queue's to it.
class Cubic final : public CongestionController {
 public:
  static constexpr double kMinWindow = 2;

  uint32_t window() const override { return static_cast<uint32_t>(window_); }
  bool slow_start() const { return window_ < threshold_; }
  const Round& round() const { return round_; }
  /// No more than so many were in flight, whatever the window allowed.
  void fit(uint32_t window) { window_ = std::clamp<double>(window, kMinWindow, window_); }

  void acknowledged(const AckNews& news, Time now) override;
  void lost(uint32_t count, Time sent, Time now) override;
  void collapsed(Time now) override;
  void idled() override;

 private:
  void look_for_rise();
  void grow(const AckNews& news, Time now);
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
  uint16_t samples_ = 0;        // of this round
  Time reduced_ = Time::min();  // losses of what was sent before have been answered for
  Round round_;
};

}  // namespace diwarp::dgram
