// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/serial.h"
#include "dgram/congestion_controller.h"

namespace diwarp::dgram {

/// Tells rounds apart, of a round trip each: one is over when something came that was sent after it
/// began. A congestion controller owns it.
class Round {
 public:
  /// Returns whether a round began with this acknowledgement, which is of the new one.
  bool update(const AckNews& news) {
    began_ = !serial_before(news.rate.delivered_at_send, end_);
    if (began_) {
      end_ = news.delivered;
      last_shortest_ = shortest_;
      shortest_ = Duration::max();
    }
    if (news.sample != Duration::zero()) shortest_ = std::min(shortest_, news.sample);
    return began_;
  }
  /// What was measured says nothing any more.
  void forget() { shortest_ = last_shortest_ = Duration::max(); }
  /// What update() returned last.
  bool began() const { return began_; }
  /// The shortest round trip of this round, and of the one before; Duration::max(): none was
  /// measured.
  Duration shortest() const { return shortest_; }
  Duration last_shortest() const { return last_shortest_; }

 private:
  Duration shortest_ = Duration::max();
  Duration last_shortest_ = Duration::max();
  uint32_t end_ = 0;  // delivered, when this round is over
  bool began_ = false;
};

}  // namespace diwarp::dgram
