// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "run.h"
#include "scenario.h"

namespace diwarp::explore {

struct Limits {
  Depth depth = {};
  /// Faults and events in one run: 0, 1, and so on up to this many are tried in turn, so that what
  /// is found first has the fewest. kAnyNumber: all runs in one go, without such an order.
  uint32_t faults = 2;
  static constexpr uint32_t kAnyNumber = UINT32_MAX;
  /// Whether to end with the first run that violates something.
  bool stop_at_first = false;
};

/// A way to violate something: of all runs with the same first violation, one with the fewest
/// faults and, among these, the fewest datagrams.
struct Counterexample {
  std::string scenario;
  std::vector<std::string> violations;
  std::string script;  ///< for ChoiceTree::replay()
  uint32_t faults = 0;
  uint32_t datagrams = 0;
  uint64_t runs = 0;   ///< that violate the same
  uint64_t first = 0;  ///< which run of the scenario was the first of them, from 1 on
};

struct Report {
  uint64_t runs = 0;
  double seconds = 0;
  std::vector<Counterexample> counterexamples;
};

/// Plays all runs of a scenario within the limits.
Report explore(const Scenario& scenario, const Limits& limits);

/// The course of one run, and what it violates: lines of text.
std::string replay(const Scenario& scenario, const Depth& depth, std::string_view script);

/// Scenarios that stand for what queue pairs do with each other.
const std::vector<std::string_view>& scenarios();
/// All ways to do two of nine operations at each end, but for the ends' names, each with these
/// words of a scenario.
std::vector<std::string> all_workloads(const std::string& words);

}  // namespace diwarp::explore
