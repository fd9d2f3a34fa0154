// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <memory>

#include <diwarp/verbs.h>

#include "base/clock.h"
#include "llp/memory/memory_network.h"
#include "wire.h"

namespace diwarp::explore {

/// Two devices on a network in memory, with a wire between them, in a time of their own. They are
/// used for one run after another, since making them takes longer than a run: queue pairs, regions
/// and all else are a run's own.
struct Testbed {
  Testbed();

  /// Before each run: nothing is on the wire, and nothing holds it.
  void begin_run();
  /// Steps both devices until nothing happens any more. Throws std::runtime_error where that is
  /// never.
  void settle();

  ManualClock clock{Time(std::chrono::seconds(1000))};
  std::shared_ptr<llp::MemoryNetwork> network =
      llp::MemoryNetwork::create({.max_datagram = 256, .queue_datagrams = 256});
  Wire wire;
  std::deque<Device> devices;  ///< of each side
};

}  // namespace diwarp::explore
