// SPDX-License-Identifier: Apache-2.0
// diwarp-latency-ratio: the latency of diwarp in terms of plain sockets, measured in turn in one
// run, since absolute figures vary from run to run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "common/echo.h"
#include "common/failure.h"
#include "common/numbers.h"
#include "common/pairing.h"
#include "common/program.h"
#include "common/session.h"
#include "common/summary.h"
#include "common/two_processes.h"
#include "latency_lanes.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-latency-ratio";
constexpr const char* kDescription =
    "Compares half round trips between two processes on this host: plain polled UDP and TCP "
    "sockets\n"
    "against diwarp's UD and RC, in turn, round by round. Each figure is the median of a round; "
    "the\n"
    "ratios are the medians of the rounds' ratios.";

struct Settings {
  size_t size = 64;
  uint64_t rounds = 7;
  uint64_t iterations = 10'000;
  double max_ratio = 0;  // 0: no limit
  bool json = false;
  Ends ends;
};

/// diwarp over either transport.
class QueuePairLane final : public Lane {
 public:
  QueuePairLane(QpType transport, Side side, const Device& device, Control& control, size_t size)
      : endpoint_(device, echo_shape(transport, size)) {
    endpoint_.post_receives();
    if (side == Side::near) {
      pair_as_client(endpoint_, control, {{"type", "row"}}, 0);
      pinger_.emplace(endpoint_, control, false);
    } else {
      pair_as_server(endpoint_, device, control, control.expect("row"), 0);
      echoer_.emplace(endpoint_, control, false);
    }
  }

  Duration ping() override {
    while (true) {
      if (const auto took = pinger_->ping()) return *took;
    }
  }

  void echo() override { echoer_->run(); }

 private:
  Endpoint endpoint_;
  std::optional<Pinger> pinger_;
  std::optional<Echoer> echoer_;
};

std::map<std::string, std::unique_ptr<Lane>> make_lanes(Side side, const Device& device,
                                                        Control& control, size_t size) {
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

std::vector<double> ratios(const Rounds& rounds, const char* of, const char* to) {
  std::vector<double> result;
  for (size_t i = 0; i < rounds.at(of).size(); ++i) {
    result.push_back(rounds.at(of)[i] / rounds.at(to)[i]);
  }
  return result;
}

Json to_json(const Settings& settings, const Rounds& rounds) {
  Json json = {{"size", settings.size},
               {"rounds", settings.rounds},
               {"iterations", settings.iterations},
               {"half_rtt_us", Json::object()}};
  for (const std::string& name : kLaneNames) json["half_rtt_us"][name] = rounds.at(name);
  json["ud_to_udp"] = median(ratios(rounds, "ud", "udp"));
  json["rc_to_tcp"] = median(ratios(rounds, "rc", "tcp"));
  return json;
}

void print_round(size_t round, const Rounds& rounds) {
  if (round == 0) {
    std::printf("half round trips in us\n%5s", "round");
    for (const std::string& name : kLaneNames) std::printf("%9s", name.c_str());
    std::printf("%9s%9s\n", "ud/udp", "rc/tcp");
  }
  std::printf("%5zu", round + 1);
  for (const std::string& name : kLaneNames) std::printf("%9.2f", rounds.at(name).back());
  std::printf("%9.2f%9.2f\n", ratios(rounds, "ud", "udp").back(),
              ratios(rounds, "rc", "tcp").back());
  std::fflush(stdout);
}

void print_ratios(const Json& result) {
  std::printf("median ratios: ud/udp %.2f, rc/tcp %.2f\n", result["ud_to_udp"].get<double>(),
              result["rc_to_tcp"].get<double>());
}

void judge(const Settings& settings, const Json& result) {
  const double worst =
      std::max(result["ud_to_udp"].get<double>(), result["rc_to_tcp"].get<double>());
  if (settings.max_ratio == 0 || worst <= settings.max_ratio) return;
  throw Failure("A ratio is higher than --max-ratio allows.");
}

void play_near(const Settings& settings, Control& control) {
  const Device device = open_device(control);
  bind_to_processor(settings.ends.cpu);
  auto lanes = make_lanes(Side::near, device, control, settings.size);
  Rounds rounds;
  for (size_t round = 0; round < settings.rounds; ++round) {
    for (const std::string& name : kLaneNames) {
      control.send({{"type", "lane"}, {"name", name}});
      rounds[name].push_back(measure_round(*lanes[name], settings.iterations));
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
    print_ratios(result);
  }
  judge(settings, result);
}

void play_far(const Settings& settings, Control& control) {
  const Device device = open_device(control);
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

std::unique_ptr<Lane> make_lane(const std::string& name, Side side, const Device& device,
                                Control& control, size_t size) {
  if (name == "udp") return make_udp_lane(side, control, size);
  if (name == "tcp") return make_tcp_lane(side, control, size);
  const QpType transport = name == "ud" ? QpType::ud : QpType::rc;
  return std::make_unique<QueuePairLane>(transport, side, device, control, size);
}

}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
