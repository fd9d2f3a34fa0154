// SPDX-License-Identifier: Apache-2.0
#include "explorer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "choice_tree.h"

namespace diwarp::explore {

namespace {

/// The script that violates the same, with the fewest faults.
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

/// The runs with so many faults (those with fewer were looked at before), or all. False where the
/// exploration is to end.
bool explore_with(Testbed& bed, const Scenario& scenario, const Limits& limits, uint32_t faults,
                  Report& report) {
  ChoiceTree tree({.faults = faults});
  while (tree.begin_run()) {
    Outcome outcome = run(bed, scenario, limits.depth, tree);
    ++report.runs;
    const bool again = tree.faults() < faults && faults != Limits::kAnyNumber;
    if (outcome.violations.empty() || again) continue;
    remember(report, {.scenario = scenario.name,
                      .violations = std::move(outcome.violations),
                      .script = tree.script(),
                      .faults = tree.faults(),
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
  Testbed bed;
  const auto start = std::chrono::steady_clock::now();
  const bool in_order = limits.faults != Limits::kAnyNumber;
  for (uint32_t faults = in_order ? 0 : limits.faults; faults <= limits.faults; ++faults)
    if (!explore_with(bed, scenario, limits, faults, report) || !in_order) break;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::string replay(const Scenario& scenario, const Depth& depth, std::string_view script) {
  std::ostringstream text;
  ChoiceTree tree = ChoiceTree::replay(script);
  tree.begin_run();
  Testbed bed;
  const Outcome outcome = run(bed, scenario, depth, tree, &text);
  std::string told = shortened(text.str());
  for (const std::string& violation : outcome.violations)
    told += "  VIOLATION: " + violation + '\n';
  return told;
}

const std::vector<std::string_view>& scenarios() {
  static const std::vector<std::string_view> all{
      // The datagrams that may be lost, in all combinations.
      "s2,s1/s1,s2",
      "s3,w2/r2,s1",
      "w2,s1/s2,w1",
      "r2,r1/s2,r3",
      "r0,s0/w0,r1",
      "s2,r2~/w2,s1~ slow",
      "s3,r2/w3,s2 batch",
      "s2,s1/s1,r2 cold",
      // Memory that goes away, at the target and at the source.
      "r3,s1/r2,w2 gone",
      "s3,s3/r3,s1 gone window=4",
      "w3,s1/w2,r2 gone",
      "r3,w2/s2,r2 invalidate",
      "w3,s1/s1~,r3~ invalidate",
      "s2,r2/w2,s1 source",
      // Messages that are refused, and those that have to wait.
      "s1,r1x/s2k,r2x",
      "w2x,s2/s4,r2",
      "s2,s2/s1,s2 short",
      "s2,r2/s1,w2 late-receives",
      "s1,r1x~/s2k,r2 gone late-receives slow",
      // Peers that begin anew, are silent for long, or further away.
      "s2,r2/w2,s1 reset",
      "s2,r2/w2,s1 anew",
      "r2,s1/s2,r1 reset cold",
      "s2,r2/s2,w2 gone reset window=4",
      "s3,r2/w2,s1 pause",
      "s3,r3/w3,s2 narrow",
      "s3,r2/w3,s1 narrow anew batch",
      "w2,s2/s1,r2 narrow gone",
      "s4,s1/ untold window=1",
      "s3,s2/w3,s1 untold",
      "s3,r3/w2,s1 hole",
      "r3,r3/s3,s3 gone window=3 slow",
      "s3,r3/r3,s3 gone anew batch",
  };
  return all;
}

std::vector<std::string> all_workloads(const std::string& words) {
  constexpr std::array<std::string_view, 9> kOperations{"s1", "s2",  "s3",  "s4", "w2",
                                                        "r2", "s1k", "w2x", "r1x"};
  std::vector<std::string> pairs;
  for (const std::string_view first : kOperations)
    for (const std::string_view second : kOperations)
      pairs.push_back(std::string(first) + ',' + std::string(second));
  std::vector<std::string> all;
  for (size_t a = 0; a < pairs.size(); ++a)
    for (size_t b = a; b < pairs.size(); ++b)
      all.push_back(pairs[a] + '/' + pairs[b] + (words.empty() ? "" : " " + words));
  return all;
}

}  // namespace diwarp::explore
