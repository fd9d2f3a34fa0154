// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace diwarp::explore {

namespace {

/// What violates the same, with the fewest faults.
void remember(Report& report, Counterexample found) {
  const auto same = [&](const Counterexample& one) {
    return one.violations.front() == found.violations.front();
  };
  const auto known = std::ranges::find_if(report.counterexamples, same);
  if (known == report.counterexamples.end()) return report.counterexamples.push_back(found);
  ++known->runs;
  if (std::tie(found.faults, found.datagrams) >= std::tie(known->faults, known->datagrams)) return;
  found.runs = known->runs;
  found.first = known->first;
  *known = std::move(found);
}

/// The runs with exactly so many faults. False where the exploration is to end.
bool explore_with(const Scenario& scenario, const Limits& limits, uint32_t faults, Report& report) {
  ChoiceTree tree({.faults = faults});
  while (tree.begin_run()) {
    Outcome outcome = run(scenario, limits.depth, tree);
    ++report.runs;
    if (outcome.violations.empty() || tree.faults() < faults) continue;
    remember(report, {.scenario = scenario.name,
                      .violations = std::move(outcome.violations),
                      .script = tree.script(),
                      .faults = faults,
                      .datagrams = outcome.datagrams,
                      .runs = 1,
                      .first = report.runs});
    if (limits.stop_at_first) return false;
  }
  return true;
}

/// A run that does not end repeats itself.
std::string shortened(const std::string& text) {
  constexpr size_t kFirst = 80;
  constexpr size_t kLast = 4;
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line + '\n');
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == kFirst && lines.size() > kFirst + kLast) {
      i = lines.size() - kLast;
      result += "  ... " + std::to_string(i - kFirst) + " lines more\n";
    }
    result += lines[i];
  }
  return result;
}

}  // namespace

Report explore(const Scenario& scenario, const Limits& limits) {
  Report report;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t faults = 0; faults <= limits.faults; ++faults)
    if (!explore_with(scenario, limits, faults, report)) break;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string replay(const Scenario& scenario, const Depth& depth, std::string_view script) {
  std::ostringstream text;
  ChoiceTree tree = ChoiceTree::replay(script);
  tree.begin_run();
  const Outcome outcome = run(scenario, depth, tree, &text);
  std::string told = shortened(text.str());
  for (const std::string& violation : outcome.violations)
    told += "  VIOLATION: " + violation + '\n';
  return told;
}

const std::vector<std::string_view>& scenarios() {
  static const std::vector<std::string_view> all{
      "s2,s1/s2,s1", "w2,s1/s1,w2", "r2,s1/s1,r2", "s1,r1x/s1,r1x", "s3,s3/r3 gone window=4",
  };
  return all;
}

}  // namespace diwarp::explore
