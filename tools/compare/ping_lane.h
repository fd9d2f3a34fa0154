// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "compare/lane.h"

namespace diwarp::tools {

/// A ping-pong: what is the same over all transports.
class PingLane : public Lane {
 public:
  explicit PingLane(Control& control) : control_(control) {}

  Sample measure(Duration time) final;
  void serve() final;

 protected:
  /// Near end: one round trip; nothing if it took more than one try.
  virtual std::optional<Duration> ping() = 0;
  /// Far end: answers until the near end says something in the control channel.
  virtual void echo() = 0;
  /// Either end, at the end: closes what needs both ends to be closed.
  virtual void finish() {}

  Control& control_;
};

}  // namespace diwarp::tools
