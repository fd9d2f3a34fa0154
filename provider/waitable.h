// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "base/clock.h"

namespace diwarp::provider {

/// A device, for a thread of the application that is about to wait for something that it brings.
class Waitable {
 public:
  virtual ~Waitable() = default;

  /// The calling thread is about to wait for `limit`. Leaves the work to the provider's own thread
  /// or, where it has none, does some. Returns how long the thread may wait before it asks again.
  virtual Duration before_wait(Duration limit) = 0;
};

}  // namespace diwarp::provider
