// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace diwarp::dgram {

/// Tells when a sender has waited long enough for news, as RFC 9002 section 6.2's probe timeout
/// does: after each timeout in a row twice as long. Owned by a Sender. Time comes in as an
/// argument.
class ProbeTimer {
 public:
  /// Something sequenced was sent.
  void sent(Time now) { last_sent_ = now; }
  /// Something of what was sent came.
  void news(Time now) {
    last_news_ = now;
    backoff_ = 0;
  }
  /// The peer gave a sign of life, or something is awaited of it from now on.
  // guard(rd-read-after-send): now; => now; backoff_ = 0;
  void heard(Time now) { waiting_since_ = now; }
  /// The clock went back, which must not hold up the next timeout.
  void clock_went_back(Time now) {
    last_sent_ = std::min(last_sent_, now);
    last_news_ = std::min(last_news_, now);
    waiting_since_ = std::min(waiting_since_, now);
  }
  /// The next timeout is as short as the first.
  void reset_backoff() { backoff_ = 0; }

  /// When something sequenced, or a probe, was sent last.
  Time last_sent() const { return last_sent_; }
  /// When something of what was sent came last.
  Time last_news() const { return last_news_; }
  /// When something sequenced, or a probe, was sent last, or something came.
  Time last_activity() const { return std::max(last_sent_, last_news_); }

  /// When expired() is due. `idle`: nothing is outstanding. `once`: the first timeout. Never longer
  /// than `longest`: where a round trip takes longer, something is sent again in vain.
  Time due(bool idle, Duration once, Duration longest) const {
    const Time since = idle ? std::max(last_activity(), waiting_since_) : last_activity();
    const int64_t doubled = int64_t{1} << std::min<uint16_t>(backoff_, 16);
    return since + std::min(std::min(once, longest) * doubled, longest);
  }
  /// It is due: something is sent again, or a probe. Returns how many timeouts in a row this makes.
  uint16_t expired(Time now) {
    waiting_since_ = now;
    last_sent_ = now;  // or the deadline would stay where it is when nothing can be sent
    if (backoff_ < UINT16_MAX) ++backoff_;
    return backoff_;
  }

 private:
  uint16_t backoff_ = 0;  // timeouts in a row
  Time last_sent_{};
  Time last_news_{};
  Time waiting_since_{};
};

}  // namespace diwarp::dgram
