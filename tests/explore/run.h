// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "choices.h"
#include "scenario.h"
#include "testbed.h"

namespace diwarp::explore {

/// How far a run is explored.
struct Depth {
  /// So many datagrams are asked about, counted as they come up for delivery. All later ones are
  /// delivered, once and in order.
  uint32_t datagrams = 8;
  /// A bit for each Fate that a datagram may have besides being delivered.
  uint32_t fates = (1u << kFates) - 1;
};

struct Outcome {
  std::vector<std::string> violations;
  uint32_t datagrams = 0;  ///< that passed the wire before everything was over
};

/// Plays a scenario once, from nothing, in a time that stands still while datagrams are under way:
/// asks `choices` about the fate of each datagram and for events between them, then lets the
/// network behave until everything is over, and tries whether the two queue pairs can still do what
/// fresh ones can. `trace` (null: none) is told of all that happens.
Outcome run(Testbed& bed, const Scenario& scenario, const Depth& depth, Choices& choices,
            std::ostream* trace = nullptr);

}  // namespace diwarp::explore
