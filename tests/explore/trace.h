// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>

#include "base/clock.h"
#include "wire.h"

namespace diwarp::explore {

/// Tells a stream, if there is one, what happens in a run, and when.
class Trace {
 public:
  /// From now on. `stream` may be null.
  Trace(std::ostream* stream, const ManualClock& clock)
      : stream_(stream), clock_(clock), started_(clock.now()) {}

  void tell(const std::string& line) const;
  void tell_of(const Datagram& datagram, Fate fate) const;

 private:
  std::ostream* const stream_;
  const ManualClock& clock_;
  const Time started_;
};

}  // namespace diwarp::explore
