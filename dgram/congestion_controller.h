// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace diwarp::dgram {

/// A delivery rate, as one transmission that came measures it
/// (draft-cheng-iccrg-delivery-rate-estimation). What was delivered is counted in datagrams.
struct RateSample {
  float rate = 0;                  ///< datagrams a second; 0: nothing could be measured
  uint32_t delivered_at_send = 0;  ///< in all, when that transmission was made
  bool app_limited = false;        ///< there was less to send, or to be taken, than might have been
};

/// The news of one acknowledgement, of which at least one datagram came.
struct AckNews {
  uint32_t came = 0;       ///< datagrams
  uint32_t delivered = 0;  ///< in all, these included; wraps
  uint32_t in_flight = 0;  ///< after it
  Time sent{};             ///< the latest transmission that came
  Duration sample{0};      ///< the round trip of that; 0: it was not the only one of its datagram
  Duration smoothed{0};    ///< the round trip
  RateSample rate;
};

/// Decides how many datagrams may be under way, and how fast they follow each other. All is counted
/// in datagrams. Loss detection is the caller's. A Sender owns one. Time comes in as an argument.
class CongestionController {
 public:
  /// Datagrams under way at first (RFC 6928), and at most.
  static constexpr uint32_t kInitialWindow = 10;
  static constexpr uint32_t kMaxWindow = 4096;

  virtual uint32_t window() const = 0;
  /// Datagrams a second; 0: nothing paces them but the window.
  virtual float pacing_rate() const { return 0; }

  virtual void acknowledged(const AckNews& news, Time now) = 0;
  /// So many transmissions were found lost, of which the last was made at `sent`.
  virtual void lost(uint32_t count, Time sent, Time now) = 0;
  /// So many that were told to be lost came after all.
  virtual void spurious(uint32_t /*count*/) {}
  /// Nothing got through for several timeouts.
  virtual void collapsed(Time now) = 0;
  /// Nothing was sent for a while, so the path may be another by now.
  virtual void idled() = 0;

 protected:
  ~CongestionController() = default;
};

}  // namespace diwarp::dgram
