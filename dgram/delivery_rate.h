// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"
#include "base/serial.h"
#include "dgram/congestion_controller.h"
#include "dgram/transmit_ring.h"

namespace diwarp::dgram {

/// Measures how fast datagrams are delivered, as draft-cheng-iccrg-delivery-rate-estimation does:
/// over the time from a transmission to its acknowledgement, or over the time in which as many were
/// sent where that was longer. So neither acknowledgements that come in a heap nor a sender that
/// was held up makes the path look faster than it is. A Sender owns it. Time comes in as an
/// argument.
class DeliveryRate {
 public:
  uint32_t delivered() const { return delivered_; }

  /// A transmission is made. `first`: none is in flight.
  void sent(TxSlot& slot, bool first, Time now) {
    if (first) first_sent_ = delivered_at_ = stamp(now);
    slot.first_sent = first_sent_;
    slot.delivered_at = delivered_at_;
    slot.delivered = delivered_;
    if (app_limited_) slot.flags |= TxSlot::app_limited;
  }
  /// Less is in flight, and will be, than might be, because the application has no more, or the
  /// peer takes no more (RFC 9002 section 7.8): what is sent from now on, until all of it came,
  /// says little of the path.
  void limited_by_application(uint32_t in_flight) {
    app_limited_ = true;
    limited_until_ = delivered_ + in_flight;
  }

  /// One came.
  void came() { ++delivered_; }
  /// What the latest transmission that came measures; the others of the same acknowledgement came
  /// before. Nothing faster than `shortest`, a round trip, can be believed.
  RateSample sample(const TxSlot& latest, Duration shortest, Time now) {
    const uint32_t at = stamp(now);
    const uint32_t send_time = stamp(latest.sent) - latest.first_sent;
    const uint32_t ack_time = at - latest.delivered_at;
    const uint32_t interval = std::max(send_time, ack_time);
    first_sent_ = stamp(latest.sent);
    delivered_at_ = at;
    if (app_limited_ && serial_before(limited_until_, delivered_)) app_limited_ = false;
    RateSample sample{.delivered_at_send = latest.delivered,
                      .app_limited = latest.has(TxSlot::app_limited)};
    if (interval != 0 && interval < kBroken && interval >= ticks(shortest))
      sample.rate = static_cast<float>(delivered_ - latest.delivered) * kTicksPerSecond /
                    static_cast<float>(interval);
    return sample;
  }

 private:
  // Times are kept in units of 1,024 ns, modulo 2^32 of them: 73 minutes.
  static constexpr float kTicksPerSecond = 1e9F / 1024;
  static constexpr uint32_t kBroken = uint32_t{1} << 31;  // a clock that went back

  static uint32_t ticks(Duration duration) { return static_cast<uint32_t>(duration.count() >> 10); }
  static uint32_t stamp(Time time) {
    return ticks(std::chrono::duration_cast<Duration>(time.time_since_epoch()));
  }

  uint32_t delivered_ = 0;
  uint32_t delivered_at_ = 0;  // when that was last counted
  uint32_t first_sent_ = 0;    // when the latest transmission that came was made
  uint32_t limited_until_ = 0;
  bool app_limited_ = false;
};

}  // namespace diwarp::dgram
