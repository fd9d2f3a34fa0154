// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/serial.h"
#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// Tells which transmissions are lost, by RFC 8985's idea with RFC 9002's bounds: one that was sent
/// before another that came is lost once enough were sent in between, or enough time has passed.
/// Transmissions are named by their order, which wraps, and not by sequence numbers: a datagram
/// that is sent again has a new one. Owned by a Sender, which asks about all that is in flight in
/// one pass.
class LossDetector {
 public:
  /// By so many transmissions a datagram may be overtaken, at most.
  static constexpr uint8_t kMostReordering = 64;

  /// This one came.
  void came(uint32_t order) {
    if (!any_came_ || serial_before(latest_, order)) latest_ = order;
    any_came_ = true;
  }
  bool any_came() const { return any_came_; }
  /// Whether the latest one that came was made before this one.
  bool latest_is_before(uint32_t order) const { return serial_before(latest_, order); }
  /// One that counted as lost came after all: twice as many may overtake from now on.
  void tolerate_more() {
    reordering_ = std::min<uint8_t>(static_cast<uint8_t>(reordering_ * 2), kMostReordering);
  }

  /// What is in flight is asked about from now on, one after another.
  void begin_pass() { loss_time_ = Time::max(); }
  /// Whether this one is lost; if it was overtaken, at `patience` at the latest.
  bool is_lost(uint32_t order, Time patience, Time now) {
    if (!serial_before(order, latest_)) return false;
    if (latest_ - order >= reordering_) return true;
    if (patience <= now) return true;
    loss_time_ = std::min(loss_time_, patience);
    return false;
  }
  /// When the next one of the last pass counts as lost; Time::max(): none was overtaken.
  Time loss_time() const { return loss_time_; }

 private:
  uint32_t latest_ = 0;  // the latest transmission that is known to have come
  uint8_t reordering_ = 3;
  bool any_came_ = false;
  Time loss_time_ = Time::max();
};

}  // namespace diwarp::dgram
