// SPDX-License-Identifier: Apache-2.0
// diwarp-latency-ratio: the latency of diwarp in terms of plain sockets, measured in turn in one
// run, since absolute figures vary from run to run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/numbers.h"
#include "common/pairing.h"
#include "common/pingpong_ends.h"
#include "common/program.h"
#include "common/session.h"
#include "common/summary.h"
#include "common/processes.h"
#include "latency_lanes.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-latency-ratio";
constexpr const char* kDescription =
    "Compares half round trips between two processes on this host: plain polled UDP and TCP\n"
    "sockets against diwarp's UD and RC, in turn, round by round. Over RC there are Sends (rc),\n"
    "RDMA Writes whose target spins on its memory with Device::progress() in the loop (write), "
    "and\n"
    "the same without any verbs call in the loop, so that the RNIC thread does the work (idle; a\n"
    "tenth of the iterations). Each figure is the median of a round; the ratios are the medians "
    "of\n"
    "the rounds' ratios.";

/// What is told, and must not be higher than --max-ratio.
struct Ratio {
  const char* name;
  const char* title;
  const char* of;
  const char* to;
};

constexpr Ratio kRatios[] = {{"ud_to_udp", "ud/udp", "ud", "udp"},
                             {"rc_to_tcp", "rc/tcp", "rc", "tcp"},
                             {"write_to_tcp", "write/tcp", "write", "tcp"}};

struct Settings {
  size_t size = 64;
  uint64_t rounds = 7;
  uint64_t iterations = 10'000;
  double max_ratio = 0;  // 0: no limit
  bool json = false;
  Ends ends;
};

/// A way over a queue pair.
struct QueuePairWay {
  QpType transport = QpType::rc;
  Operation operation = Operation::send;
  Waiting waiting = Waiting::progressing;
};

QueuePairWay way_of(const std::string& lane) {
  if (lane == "ud") return {.transport = QpType::ud};
  if (lane == "write") return {.operation = Operation::write};
  if (lane == "idle") return {.operation = Operation::write, .waiting = Waiting::idle};
  return {};
}

class QueuePairLane final : public Lane {
 public:
  QueuePairLane(const QueuePairWay& way, Side side, Device& device, Control& control, size_t size)
      : endpoint_(device, near_shape(way.transport, way.operation, size)) {
    endpoint_.post_receives();
    if (side == Side::near) {
      near_ = make_near_end(endpoint_, control, false, way.waiting);
      pair_as_client(endpoint_, control, {{"type", "row"}}, 0);
    } else {
      far_ = make_far_end(endpoint_, control, way.operation, false, way.waiting);
      pair_as_server(endpoint_, device, control, control.expect("row"), 0);
    }
  }

  Duration ping() override {
    while (true) {
      if (const auto took = near_->ping()) return *took;
    }
  }

  void echo() override { far_->run(); }

 private:
  Endpoint endpoint_;
  std::unique_ptr<NearEnd> near_;
  std::unique_ptr<FarEnd> far_;
};

std::map<std::string, std::unique_ptr<Lane>> make_lanes(Side side, Device& device, Control& control,
                                                        size_t size) {
  std::map<std::string, std::unique_ptr<Lane>> lanes;
  for (const std::string& name : kLaneNames) {
    lanes[name] = make_lane(name, side, device, control, size);
  }
  return lanes;
}

/// Half of the median round trip, in microseconds.
double measure_round(Lane& lane, uint64_t iterations) {
  std::vector<double> half_rtts;
  half_rtts.reserve(iterations);
  for (uint64_t i = 0; i < iterations / 10; ++i) lane.ping();
  for (uint64_t i = 0; i < iterations; ++i) {
    half_rtts.push_back(std::chrono::duration<double, std::micro>(lane.ping()).count() / 2);
  }
  return median(std::move(half_rtts));
}

using Rounds = std::map<std::string, std::vector<double>>;

/// Of each round.
std::vector<double> ratios(const Rounds& rounds, const Ratio& ratio) {
  std::vector<double> result;
  for (size_t i = 0; i < rounds.at(ratio.of).size(); ++i) {
    result.push_back(rounds.at(ratio.of)[i] / rounds.at(ratio.to)[i]);
  }
  return result;
}

Json to_json(const Settings& settings, const Rounds& rounds) {
  Json json = {{"size", settings.size},
               {"rounds", settings.rounds},
               {"iterations", settings.iterations},
               {"half_rtt_us", Json::object()}};
  for (const std::string& name : kLaneNames) json["half_rtt_us"][name] = rounds.at(name);
  for (const Ratio& ratio : kRatios) json[ratio.name] = median(ratios(rounds, ratio));
  return json;
}

void print_round(size_t round, const Rounds& rounds) {
  if (round == 0) {
    std::printf("half round trips in us\n%5s", "round");
    for (const std::string& name : kLaneNames) std::printf("%9s", name.c_str());
    for (const Ratio& ratio : kRatios) std::printf("%11s", ratio.title);
    std::printf("\n");
  }
  std::printf("%5zu", round + 1);
  for (const std::string& name : kLaneNames) std::printf("%9.2f", rounds.at(name).back());
  for (const Ratio& ratio : kRatios) std::printf("%11.2f", ratios(rounds, ratio).back());
  std::printf("\n");
  std::fflush(stdout);
}

void print_ratios(const Json& result, const Rounds& rounds) {
  std::printf("medians:");
  for (const Ratio& ratio : kRatios) {
    std::printf(" %s %.2f,", ratio.title, result[ratio.name].get<double>());
  }
  std::printf(" idle %.2f us\n", median(rounds.at("idle")));
}

void judge(const Settings& settings, const Json& result) {
  if (settings.max_ratio == 0) return;
  for (const Ratio& ratio : kRatios) {
    if (result[ratio.name].get<double>() <= settings.max_ratio) continue;
    throw Failure(std::string("The ratio ") + ratio.title + " is higher than --max-ratio allows.");
  }
}

uint64_t iterations_of(const std::string& lane, const Settings& settings) {
  return lane == "idle" ? std::max<uint64_t>(settings.iterations / 10, 1) : settings.iterations;
}

void play_near(const Settings& settings, Control& control) {
  Device device = open_device(control);
  bind_to_processor(settings.ends.cpu);
  auto lanes = make_lanes(Side::near, device, control, settings.size);
  Rounds rounds;
  for (size_t round = 0; round < settings.rounds; ++round) {
    for (const std::string& name : kLaneNames) {
      control.send({{"type", "lane"}, {"name", name}});
      rounds[name].push_back(measure_round(*lanes[name], iterations_of(name, settings)));
      control.send({{"type", "stop"}});
      control.expect("stopped");
    }
    if (!settings.json) print_round(round, rounds);
  }
  control.send({{"type", "lane"}, {"name", ""}});
  const Json result = to_json(settings, rounds);
  if (settings.json) {
    std::printf("%s\n", result.dump(2).c_str());
  } else {
    print_ratios(result, rounds);
  }
  judge(settings, result);
}

void play_far(const Settings& settings, Control& control) {
  Device device = open_device(control);
  bind_to_processor(settings.ends.cpu < 0 ? -1 : settings.ends.cpu + 1);
  auto lanes = make_lanes(Side::far, device, control, settings.size);
  while (true) {
    const auto lane = lanes.find(text_in(control.expect("lane"), "name"));
    if (lane == lanes.end()) return;
    lane->second->echo();
    control.expect("stop");
    control.send({{"type", "stopped"}});
  }
}

Settings read_settings(CLI::App& app, int argc, char** argv, bool& go_on) {
  Settings settings;
  std::string size = "64";
  bool ipv6 = false;
  app.add_option("--size", size, "Bytes in a message, 1 to 64000")->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Rounds")->capture_default_str();
  app.add_option("--iterations", settings.iterations, "Round trips of each kind in a round")
      ->capture_default_str();
  app.add_option("--max-ratio", settings.max_ratio, "Fail if a ratio is higher");
  app.add_option("--cpu", settings.ends.cpu, "Bind one end to processor N, the other to N+1");
  app.add_flag("--ipv6", ipv6, "Use ::1");
  app.add_flag("--json", settings.json, "Print JSON");
  go_on = parse_command_line(app, argc, argv);
  const std::vector<uint64_t> sizes = parse_sizes({size});
  if (sizes.size() != 1 || sizes[0] < 1 || sizes[0] > 64'000) {
    throw Failure("--size needs one size from 1 to 64000 bytes.");
  }
  if (settings.rounds < 1 || settings.rounds > 10'000 || settings.iterations < 1 ||
      settings.iterations > 100'000'000) {
    throw Failure("--rounds and --iterations need numbers from 1 on.");
  }
  settings.size = sizes[0];
  settings.ends.address = Address::loopback(ipv6 ? AddressFamily::ipv6 : AddressFamily::ipv4);
  return settings;
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  bool go_on = true;
  const Settings settings = read_settings(app, argc, argv, go_on);
  if (!go_on) return;
  Terms terms;
  run_session(kName, settings.ends, terms,
              {.client = [&](Control& control) { play_near(settings, control); },
               .server = [&](Control& control, const Terms&) { play_far(settings, control); }});
}

}  // namespace

std::unique_ptr<Lane> make_lane(const std::string& name, Side side, Device& device,
                                Control& control, size_t size) {
  if (name == "udp") return make_udp_lane(side, control, size);
  if (name == "tcp") return make_tcp_lane(side, control, size);
  return std::make_unique<QueuePairLane>(way_of(name), side, device, control, size);
}

}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
