// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "base/serial.h"
#include "dgram/round_trip.h"

namespace diwarp::dgram {

/// Tells which transmissions are lost, by time, as RACK does (RFC 8985): one that was made before
/// another that came is lost once it is overdue by a reordering window. While the network was not
/// seen to reorder, it is also lost once one came that was made three transmissions later, or more.
/// A retransmission is one like any other, so it is found lost in the same way. Transmissions are
/// named by their order, which wraps, and not by sequence numbers. Owned by a Sender, which asks
/// about those in flight from the oldest on.
class LossDetector {
 public:
  /// DupThresh (RFC 8985 section 6.2), as a distance: those between may be lost, too.
  static constexpr uint32_t kDuplicateThreshold = 3;
  /// Quarters of the shortest round trip that the reordering window has at most; and never more
  /// than a smoothed round trip.
  static constexpr uint8_t kMostQuarters = 64;
  /// Rounds with losses after which the window is as small as at first.
  static constexpr uint8_t kRoundsToForget = 16;
  /// A round trip that took seconds must not hold up the repair of a loss.
  static constexpr Duration kLongestWait = std::chrono::seconds(1);

  /// This one came after `round_trip`.
  void came(uint32_t order, Duration round_trip) {
    if (any_came_ && !serial_before(latest_, order)) return;
    latest_ = order;
    round_trip_ = round_trip;
    any_came_ = true;
  }
  bool any_came() const { return any_came_; }
  /// Datagrams were found to have come after later ones.
  void reordered() { reordered_ = true; }
  /// One that counted as lost came after all: the window was too small.
  void tolerate_more() {
    reordered_ = true;
    quarters_ = std::min<uint8_t>(static_cast<uint8_t>(quarters_ + 1), kMostQuarters);
    rounds_left_ = kRoundsToForget;
  }
  /// A round in which something was lost is over.
  void lost_in_round() {
    if (rounds_left_ != 0 && --rounds_left_ == 0) quarters_ = 1;
  }

  /// Those in flight are asked about from now on.
  void begin_pass(const RoundTrip& round_trip) {
    loss_time_ = Time::max();
    wait_ = std::clamp(round_trip_, Duration::zero(), kLongestWait) + window(round_trip);
    wait_ = std::min(wait_, kLongestWait);
  }
  enum class Verdict : uint8_t {
    lost,
    overtaken,  ///< it is lost at loss_time(), unless it comes
    in_flight,  ///< nothing sent later came
  };
  Verdict check(uint32_t order, Time sent, Time now) {
    if (!any_came_ || !serial_before(order, latest_)) return Verdict::in_flight;
    if (!reordered_ && latest_ - order >= kDuplicateThreshold) return Verdict::lost;
    if (sent + wait_ <= now) return Verdict::lost;
    loss_time_ = std::min(loss_time_, sent + wait_);
    return Verdict::overtaken;
  }
  /// When the next one of the last pass counts as lost; Time::max(): none was overtaken.
  Time loss_time() const { return loss_time_; }

 private:
  /// By which the network may reorder; not known before a round trip is measured.
  Duration window(const RoundTrip& round_trip) const {
    if (!round_trip.measured()) return Duration::zero();
    const Duration quarter = std::min(round_trip.shortest(), kLongestWait) / 4;
    return std::min(quarter * quarters_, round_trip.smoothed());
  }

  uint32_t latest_ = 0;   // the latest transmission that is known to have come (RACK.segment)
  uint8_t quarters_ = 1;  // RACK.reo_wnd_mult
  uint8_t rounds_left_ = 0;
  bool any_came_ = false;
  bool reordered_ = false;
  Duration round_trip_{0};  // of the latest one (RACK.rtt)
  Duration wait_{0};
  Time loss_time_ = Time::max();
};

}  // namespace diwarp::dgram
