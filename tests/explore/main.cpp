// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "explorer.h"

using namespace diwarp::explore;

namespace {

constexpr const char* kHelp =
    R"(diwarp-explore: plays all that may happen between two RD queue pairs (tests/explore/README.md)

  --depth N         datagrams of a run whose fate is asked for (8)
  --faults N        faults and events of a run, at most (2); any: all combinations, in one go
  --fates A,B,...   what may become of a datagram: drop twice swap late echo outage (all)
  --scenario TEXT   plays this one; may be given again (all of --list)
  --sweep WORDS     plays all workloads of two operations each way with these words, and tells of
                    those that violate something
  --replay SCRIPT   shows one run of the scenario: a finding comes with its script
  --first           ends a scenario with the first violation
  --expect TEXT     succeeds where a violation contains this, and only then
  --list            the scenarios
)";

struct Options {
  Limits limits;
  std::vector<std::string> scenarios;
  std::string script;
  std::string expected;
  bool help = false;
  bool list = false;
  bool sweeps = false;
};

uint32_t number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::invalid_argument("Not a number: " + std::string(text));
  return value;
}

uint32_t fates(std::string_view text) {
  uint32_t bits = 0;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
    uint32_t fate = 0;
    while (fate < kFates && to_string(static_cast<Fate>(fate)) != name) ++fate;
    if (fate == kFates) throw std::invalid_argument("No such fate: " + std::string(name));
    bits |= 1u << fate;
  }
  return bits;
}

/// An option that has a value. False where there is no such option.
bool take(Options& options, std::string_view option, const std::string& value) {
  if (option == "--depth")
    options.limits.depth.datagrams = number(value);
  else if (option == "--faults")
    options.limits.faults = value == "any" ? Limits::kAnyNumber : number(value);
  else if (option == "--fates")
    options.limits.depth.fates = fates(value);
  else if (option == "--scenario")
    options.scenarios.push_back(value);
  else if (option == "--sweep")
    options.sweeps = true, options.scenarios = all_workloads(value);
  else if (option == "--replay")
    options.script = value;
  else if (option == "--expect")
    options.expected = value;
  else
    return false;
  return true;
}

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t at = 0; at < arguments.size(); ++at) {
    const std::string& option = arguments[at];
    if (option == "--help")
      options.help = true;
    else if (option == "--list")
      options.list = true;
    else if (option == "--first")
      options.limits.stop_at_first = true;
    else if (at + 1 == arguments.size() || !take(options, option, arguments[++at]))
      throw std::invalid_argument(option + " is no option, or wants a value: see --help");
  }
  if (options.scenarios.empty()) options.scenarios.assign(scenarios().begin(), scenarios().end());
  return options;
}

void print(const Counterexample& found) {
  std::printf("  %s (%u faults, %u datagrams; %llu runs, first %llu)\n",
              found.violations.front().c_str(), found.faults, found.datagrams,
              static_cast<unsigned long long>(found.runs),
              static_cast<unsigned long long>(found.first));
  std::printf("    --scenario '%s' --replay %s\n", found.scenario.c_str(), found.script.c_str());
}

void print(const Scenario& scenario, const Report& report) {
  std::printf("%-40s %9llu runs %7.1f s %5.0f us each, %zu violations\n", scenario.name.c_str(),
              static_cast<unsigned long long>(report.runs), report.seconds,
              1e6 * report.seconds / static_cast<double>(report.runs),
              report.counterexamples.size());
  for (const Counterexample& found : report.counterexamples) print(found);
  std::fflush(stdout);
}

/// Whether what was to come of it has.
bool is_as_wished(const Options& options, const Report& report) {
  if (options.expected.empty()) return report.counterexamples.empty();
  const auto contains = [&](const Counterexample& found) {
    return found.violations.front().find(options.expected) != std::string::npos;
  };
  return std::ranges::any_of(report.counterexamples, contains);
}

/// True where nothing is violated, or what is expected.
bool play(const Options& options) {
  Report all;
  for (const std::string& name : options.scenarios) {
    const Scenario scenario = Scenario::parse(name);
    if (!options.script.empty()) {
      std::fputs(replay(scenario, options.limits.depth, options.script).c_str(), stdout);
      continue;
    }
    const Report report = explore(scenario, options.limits);
    if (!options.sweeps || !report.counterexamples.empty()) print(scenario, report);
    all.runs += report.runs;
    all.seconds += report.seconds;
    all.counterexamples.insert(all.counterexamples.end(), report.counterexamples.begin(),
                               report.counterexamples.end());
  }
  if (!options.script.empty()) return true;
  const bool any = options.limits.faults == Limits::kAnyNumber;
  std::printf("%llu runs in %.1f s, depth %u, %s faults: %zu violations\n",
              static_cast<unsigned long long>(all.runs), all.seconds,
              options.limits.depth.datagrams,
              any ? "all" : ("up to " + std::to_string(options.limits.faults)).c_str(),
              all.counterexamples.size());
  return is_as_wished(options, all);
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse({argv + 1, argv + argc});
  if (options.help) return std::fputs(kHelp, stdout) < 0;
  if (options.list) {
    for (const std::string& name : options.scenarios) std::puts(name.c_str());
    return EXIT_SUCCESS;
  }
  return play(options) ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "diwarp-explore: %s\n", error.what());
  return 2;
}
