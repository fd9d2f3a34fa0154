// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/lane.h"

namespace diwarp::tools {

/// Units (bytes or messages) that go one way as fast as they can. Bytes count that arrive in the
/// time from the first arrival to the last: a sender that outruns the receiver gains nothing.
class StreamLane : public Lane {
 public:
  explicit StreamLane(Control& control) : control_(control) {}

  Sample measure(Duration time) final;
  void serve() final;

 protected:
  /// Near end: one step of sending; returns how many units left.
  virtual uint64_t send() = 0;
  /// Near end: called about each millisecond while it sends.
  virtual void look_after(Time) {}
  /// Far end: one step of receiving that never waits; returns how many units came.
  virtual uint64_t receive() = 0;
  /// Either end, at the end.
  virtual void finish() {}

 private:
  struct Arrivals;

  uint64_t send_for(Duration time);
  Json run(Duration time);
  Arrivals absorb();

  Control& control_;
};

}  // namespace diwarp::tools
