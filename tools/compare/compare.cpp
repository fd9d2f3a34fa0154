// SPDX-License-Identifier: Apache-2.0
// diwarp-compare: diwarp in terms of the sockets underneath, and of libfabric's providers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/json_output.h"
#include "common/numbers.h"
#include "common/program.h"
#include "common/session.h"
#include "compare/machine.h"
#include "compare/output.h"
#include "compare/plot.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-compare";
constexpr const char* kDescription =
    "Compares diwarp between two processes of this host with programs made of nothing but "
    "sockets, over the same protocols: each way is measured once a round, one after the other, "
    "since absolute figures vary from run to run. A row is the median of the rounds' ratios, "
    "and their quartiles. What the rows named local-* measure goes through shared memory, all "
    "else through the network's stack. Both ends poll, each bound to a processor. Latencies are "
    "half round "
    "trips; bandwidths and rates are what arrives at the receiver.";

struct Options {
  Settings settings;
  std::string only = ".";
  std::string json_file;
  std::string plot_file;
  bool list = false;
};

void check(const Options& options) {
  using std::chrono::milliseconds;
  const Settings& settings = options.settings;
  if (settings.rounds < 1 || settings.rounds > 1000) {
    throw Failure("--rounds needs a number from 1 to 1000.");
  }
  if (settings.time < milliseconds(1) || settings.time > milliseconds(10'000)) {
    throw Failure("--time needs a number of milliseconds from 1 to 10000.");
  }
  check_processors(settings);
}

size_t size_of(const std::vector<std::string>& texts) {
  const std::vector<uint64_t> sizes = parse_sizes(texts);
  if (sizes.size() != 1 || sizes.front() < 4 || sizes.front() > (1 << 20))
    throw Failure("--size needs one number of bytes from 4 to 1M.");
  return sizes.front();
}

std::optional<Options> read_options(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  Options options;
  std::optional<uint64_t> rounds;
  std::optional<int64_t> time;
  std::vector<int> cpus;
  std::vector<std::string> sizes;
  bool quick = false;
  DeviceArguments device(LocalPath::off);  // the rows of shared memory have it all the same
  app.add_option("--rounds", rounds, "Measurements of each way (default 7)")->type_name("N");
  app.add_option("--time", time, "Milliseconds of a measurement (default 250)")->type_name("MS");
  app.add_option("--size", sizes,
                 "Bytes of the messages, 4 to 1M, instead of those in the rows' titles; rows that "
                 "are of another size then have no target")
      ->expected(1)
      ->type_name("N");
  app.add_flag("--quick", quick, "3 rounds of 40 ms, to see that all works: no figures to quote");
  app.add_option("--only", options.only, "Rows whose name matches the regular expression")
      ->type_name("REGEX");
  app.add_flag("--list", options.list, "Print the rows' names and targets, and measure nothing");
  app.add_option("--cpus", cpus,
                 "Processors of the two ends (default: the first two; -1: not bound)")
      ->delimiter(',')
      ->type_name("A,B");
  app.add_flag("--ipv6", options.settings.ipv6, "Use ::1");
  device.add_to(app, "software on the loopback interface");
  add_json_option(app, options.json_file);
  app.add_option("--plot", options.plot_file, "Plot the ratios into FILE as SVG (needs gnuplot)")
      ->type_name("FILE");
  if (!parse_command_line(app, argc, argv)) return std::nullopt;
  Settings& settings = options.settings;
  settings.rounds = rounds.value_or(quick ? 3 : settings.rounds);
  settings.device = device.choice();
  if (quick) settings.time = std::chrono::milliseconds(40);
  if (!sizes.empty()) settings.size = size_of(sizes);
  if (time) settings.time = std::chrono::milliseconds(*time);
  if (!cpus.empty() && cpus.size() != 2) throw Failure("--cpus needs two processors: 0,1.");
  settings.cpus = cpus.empty() ? default_processors() : std::array<int, 2>{cpus[0], cpus[1]};
  check(options);
  return options;
}

std::string plot_title(const Json& machine) {
  return machine["processor"].get<std::string>() + " x " + machine["processors"].dump() +
         ", Linux " + machine["kernel"].get<std::string>();
}

/// The output of --json, and that of --plot.
struct Comparison {
  Json json;
  std::vector<Figure> figures;
};

/// The end that runs the comparison.
Comparison compare(const Options& options, std::span<const Row> rows, Control& control) {
  const Settings& settings = options.settings;
  const bool table = options.json_file != "-";
  const Json machine = describe_machine(control.local_address().with_port(0));
  if (table) {
    print_entries("Machine", machine);
    print_entries("Settings", to_json(settings));
    std::fflush(stdout);
  }
  const Measurements measurements = play_near(settings, lanes_of(rows), control);
  std::vector<Figure> figures;
  for (const Row& row : rows) figures.push_back(figure_of(row, measurements));
  if (table) print_table(figures);
  Json result = json_output(kName);
  result.update({{"machine", machine}, {"settings", to_json(settings)}, {"rows", Json::array()}});
  for (const Figure& figure : figures) result["rows"].push_back(to_json(figure));
  return {std::move(result), std::move(figures)};
}

void run(int argc, char** argv) {
  const std::optional<Options> options = read_options(argc, argv);
  if (!options) return;
  std::vector<Row> rows = choose_rows(options->only);
  if (options->settings.size) rows = resized(std::move(rows), *options->settings.size);
  if (options->list) return print_list(rows);
  JsonFile json(options->json_file);
  if (!options->plot_file.empty()) check_plot(options->plot_file);
  Ends ends;
  ends.timeout = std::chrono::seconds(30);
  const bool ipv6 = options->settings.ipv6;
  ends.address = Address::loopback(ipv6 ? AddressFamily::ipv6 : AddressFamily::ipv4);
  Terms terms;
  Comparison result;
  raise_descriptor_limit();
  run_session(kName, ends, terms,
              {.client = [&](Control& control) { result = compare(*options, rows, control); },
               .server = [&](Control& control,
                             const std::vector<Terms>&) { play_far(options->settings, control); }});
  json.write(result.json);
  if (!options->plot_file.empty())
    write_plot(options->plot_file, plot_title(result.json["machine"]), result.figures);
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
