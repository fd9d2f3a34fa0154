// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/ring.h"
#include "base/token_bucket.h"
#include "diwarp/attributes.h"
#include "llp/datagram_link.h"
#include "rdmap/datagram.h"
#include "rnic/context/counter_log.h"

namespace diwarp::rnic {

class ControlSender;

/// Lets so many things a second through, and a tenth of that at once.
class RateLimit {
 public:
  /// 0: nothing passes.
  explicit RateLimit(uint32_t rate);
  /// Whether one more may pass now.
  bool take(Time now);

 private:
  TokenBucket bucket_;  // a tenth of a second's worth
};

/// The reports of faults over datagrams: to the application, by the error queue, and to the source
/// of the offending datagram, by Error messages. Both are bounded, so that nobody can be drowned in
/// them. With the baton.
class ErrorReports {
 public:
  /// `entries`: of the error queue. `rate`: Errors sent in a second.
  ErrorReports(ControlSender& control, const LoggedCounters& counters, uint32_t entries,
               uint32_t rate);

  /// A fault was found in a segment that came from `from` in a datagram of `datagram_bytes`.
  /// `reply`: its source is told (never of what came to a group), of `told` instead where there is
  /// that. The Error is no longer than that datagram.
  void found(const llp::Destination& from, const rdmap::DatagramSegment& segment,
             TerminateCode code, size_t datagram_bytes, bool reply, Time now,
             const std::optional<TerminateCode>& told = std::nullopt);
  /// An Error came that concerns no work request under way.
  void received(const Address& from, const rdmap::ErrorReport& report);

  /// Something that fails nothing is told to the application alone. Such entries fill a quarter of
  /// the queue at most, so that a forger of them leaves room for the others.
  void inform(const DatagramError& error);

  /// The oldest entry, which leaves the queue.
  std::optional<DatagramError> poll();
  void reset() {
    if (queue_) queue_->clear();
    informing_ = 0;
  }

 private:
  bool add(const DatagramError& error);

  ControlSender& control_;
  const LoggedCounters& counters_;
  const uint32_t entries_;
  uint32_t informing_ = 0;  // entries of the queue that inform()
  // A newer error finds no room when it is full. Made with the first one: most queue pairs never
  // have any.
  std::unique_ptr<Ring<DatagramError>> queue_;
  RateLimit limit_;
};

}  // namespace diwarp::rnic
