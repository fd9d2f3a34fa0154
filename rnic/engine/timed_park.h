// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/unique_fd.h"

namespace diwarp::rnic {

/// A wait of one thread whose end the others can put off, or bring forward, without waking it.
class TimedPark {
 public:
  TimedPark();

  /// The wait under way, or the next one, ends so long from now. Any thread; one system call.
  void end_in(Duration time);
  /// Returns once that has passed.
  void wait();

 private:
  UniqueFd timer_;
};

}  // namespace diwarp::rnic
