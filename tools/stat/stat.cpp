// SPDX-License-Identifier: Apache-2.0
// diwarp-stat: what the devices of running processes do.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "common/json_output.h"
#include "common/program.h"
#include "stat/output.h"
#include "stat/sample.h"
#include "stat/screen.h"
#include "stat/table.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-stat";
constexpr const char* kDescription =
    "Shows the counters of the devices of running processes: packets, bytes, drops by reason, "
    "CRC errors, what was sent again, queue pairs, completions that wait, open records, and the "
    "share of the time that each engine worked. On a terminal it fills the screen, until q is "
    "pressed; elsewhere it prints one table. With --watch, JSON is a line each time.";

constexpr double kLongestInterval = 86400;  // s

struct Settings {
  Selection selection;
  bool once = false;
  std::string json_file;
  bool prometheus = false;
  std::optional<double> interval;  // s
  uint64_t count = 0;              // of samples; 0: no end
};

std::chrono::nanoseconds interval_of(const Settings& settings) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(settings.interval.value_or(1)));
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

/// Throws Failure if the user asked for processes that cannot be shown: `missing` says why.
void check_all_shown(const std::vector<Problem>& missing) {
  std::string sentences;
  for (const Problem& problem : missing)
    sentences += (sentences.empty() ? "" : " ") + problem.message;
  if (!sentences.empty()) throw Failure(sentences);
}

void run_once(const Settings& settings) {
  JsonFile json(settings.json_file);
  Sample sample = take_sample(settings.selection);
  const std::string in_json = json.wanted() ? json_of(sample, nullptr, 2) + "\n" : "";
  const std::vector<Problem> missing = take_missing(sample, settings.selection);
  const bool nothing = !missing.empty() && sample.devices.empty();
  if (settings.prometheus)
    std::fputs(prometheus_of(sample).c_str(), stdout);
  else if (!json.replaces_text() && !nothing)
    print(table_of(sample, nullptr, false));
  json.write_part(in_json);
  json.finish();
  check_all_shown(missing);
}

/// A watch of processes that are not there would have nothing to show. Those that have just been
/// started have some time to open their device.
Sample first_sample(const Selection& selection) {
  constexpr std::chrono::milliseconds kStartUp(3000), kBetween(50);
  for (std::chrono::milliseconds waited(0);; waited += kBetween) {
    Sample sample = take_sample(selection);
    const std::vector<Problem> missing = take_missing(sample, selection);
    const bool starting = std::ranges::any_of(missing, &Problem::no_device);
    if (!starting || waited >= kStartUp) {
      check_all_shown(missing);
      return sample;
    }
    pause_for(kBetween);
  }
}

/// One table after another, or one line of JSON, until the user interrupts or nobody reads it.
void run_watch(const Settings& settings) {
  JsonFile json(settings.json_file);
  std::optional<Sample> before;
  for (uint64_t i = 0; settings.count == 0 || i < settings.count; ++i) {
    if (i != 0) pause_for(interval_of(settings));
    Sample now = i == 0 ? first_sample(settings.selection) : take_sample(settings.selection);
    const Sample* const earlier = before ? &*before : nullptr;
    if (json.wanted()) json.write_part(json_of(now, earlier, -1) + "\n");
    if (!json.replaces_text()) {
      if (i != 0) std::printf("\n");
      print(table_of(now, earlier, true));
    }
    if (std::fflush(stdout) != 0 || !std::cout) return;
    before = std::move(now);
  }
  json.finish();
}

void run_screen(const Settings& settings) {
  Sample now = first_sample(settings.selection);
  Screen screen;
  screen.show(table_of(now, nullptr, true));
  for (uint64_t i = 1; screen.wait(interval_of(settings)); ++i) {
    if (settings.count != 0 && i >= settings.count) return;
    const Sample before = std::exchange(now, take_sample(settings.selection));
    screen.show(table_of(now, &before, true));
  }
}

void check(const Settings& settings) {
  const bool watches = settings.interval.has_value() || settings.count != 0;
  const std::string& file = settings.json_file;
  if (!file.empty() && file.find_first_not_of("0123456789") == std::string::npos)
    throw Failure("--json takes a file, not " + file + ": name the processes before --json.");
  if (!file.empty() && settings.prometheus) throw Failure("Choose --json or --prometheus.");
  if (settings.once && watches) throw Failure("--once contradicts --watch and --count.");
  if (settings.prometheus && watches)
    throw Failure("--prometheus prints once; let the scraper say how often.");
  if (settings.interval && !(*settings.interval > 0 && *settings.interval <= kLongestInterval))
    throw Failure("--watch needs a number of seconds above 0, at most 86400.");
  for (const pid_t process : settings.selection.processes)
    if (process <= 0) throw Failure("The number of a process is above 0.");
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  Settings settings;
  app.add_option("PID", settings.selection.processes, "These processes alone");
  app.add_flag("--all", settings.selection.all_users,
               "Processes of all users (root alone may look at those)");
  app.add_flag("--once", settings.once, "Print one table, of all since each device was opened");
  app.add_option("--watch", settings.interval, "Seconds between two looks (default: 1)");
  app.add_option("--count", settings.count, "End after so many looks");
  add_json_option(app, settings.json_file);
  app.add_flag("--prometheus", settings.prometheus, "Print the text format of Prometheus");
  if (!parse_command_line(app, argc, argv)) return;
  check(settings);
  std::vector<pid_t>& processes = settings.selection.processes;
  std::ranges::sort(processes);
  processes.erase(std::unique(processes.begin(), processes.end()),
                  processes.end());  // ranges: not with Clang 14
  const bool watches = settings.interval.has_value() || settings.count != 0;
  const bool one = settings.once || settings.prometheus;
  if (!one && settings.json_file.empty() && is_terminal()) return run_screen(settings);
  if (!one && watches) return run_watch(settings);
  run_once(settings);
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
