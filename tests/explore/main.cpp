// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "explorer.h"

using namespace diwarp::explore;

namespace {

struct Options {
  Limits limits;
  std::vector<std::string> scenarios;
  std::string script;
};

std::string value_of(int argc, char** argv, int& at) {
  if (at + 1 == argc) throw std::invalid_argument(std::string(argv[at]) + " needs a value");
  return argv[++at];
}

Options parse(int argc, char** argv) {
  Options options;
  for (int at = 1; at < argc; ++at) {
    const std::string_view option = argv[at];
    if (option == "--depth")
      options.limits.depth.datagrams = static_cast<uint32_t>(std::stoul(value_of(argc, argv, at)));
    else if (option == "--faults")
      options.limits.faults = static_cast<uint32_t>(std::stoul(value_of(argc, argv, at)));
    else if (option == "--scenario")
      options.scenarios.push_back(value_of(argc, argv, at));
    else if (option == "--replay")
      options.script = value_of(argc, argv, at);
    else if (option == "--first")
      options.limits.stop_at_first = true;
    else
      throw std::invalid_argument("No such option: " + std::string(option));
  }
  if (options.scenarios.empty())
    for (const std::string_view name : scenarios()) options.scenarios.emplace_back(name);
  return options;
}

bool report_on(const Scenario& scenario, const Limits& limits) {
  const Report report = explore(scenario, limits);
  std::printf("%-40s %10llu runs %8.1f s %8.0f us a run  %zu violations\n", scenario.name.c_str(),
              static_cast<unsigned long long>(report.runs), report.seconds,
              1e6 * report.seconds / static_cast<double>(report.runs),
              report.counterexamples.size());
  for (const Counterexample& one : report.counterexamples) {
    std::printf("  %s (%u faults, %u datagrams; %llu runs; run %llu was the first)\n",
                one.violations.front().c_str(), one.faults, one.datagrams,
                static_cast<unsigned long long>(one.runs),
                static_cast<unsigned long long>(one.first));
    std::printf("    --scenario '%s' --replay %s\n", one.scenario.c_str(), one.script.c_str());
  }
  std::fflush(stdout);
  return report.counterexamples.empty();
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  bool clean = true;
  for (const std::string& name : options.scenarios) {
    const Scenario scenario = Scenario::parse(name);
    if (options.script.empty())
      clean = report_on(scenario, options.limits) && clean;
    else
      std::fputs(replay(scenario, options.limits.depth, options.script).c_str(), stdout);
  }
  return clean ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "diwarp-explore: %s\n", error.what());
  return 2;
}
