// SPDX-License-Identifier: Apache-2.0
#include "compare/ucx.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include "compare/captured.h"
#include "compare/tcp_ports.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// For one run of both processes, and for its server to end when its client has.
constexpr Duration kPatience = std::chrono::seconds(15);
constexpr Duration kServerPatience = std::chrono::seconds(3);
constexpr uint64_t kFewest = 50;
constexpr uint64_t kMost = 10'000'000;

std::vector<std::string> values_of(const std::string& line) {
  std::vector<std::string> values;
  std::istringstream stream(line);
  for (std::string value; std::getline(stream, value, ',');) {
    std::erase(value, ' ');
    values.push_back(std::move(value));
  }
  return values;
}

class UcxLane final : public Lane {
 public:
  UcxLane(const Place& place, const UcxWay& way, std::shared_ptr<double> transfer)
      : place_(place), way_(way), transfer_(std::move(transfer)) {}

  /// The other end has nothing to do.
  void serve() override {}

  Sample measure(Duration time) override {
    const double microseconds = std::chrono::duration<double, std::micro>(time).count();
    const double each = way_.bandwidth ? *transfer_ : 2 * *transfer_;
    const UcxFigures figures =
        run(std::clamp(static_cast<uint64_t>(microseconds / each), kFewest, kMost));
    *transfer_ = figures.latency;
    const double value = way_.bandwidth ? figures.bandwidth : figures.latency;
    return {.value = value, .mean = value};
  }

 private:
  UcxFigures run(uint64_t iterations) {
    const std::string host = place_.control.local_address().host();
    const Time deadline = steady_clock::now() + kPatience;
    const uint16_t port = free_tcp_port(place_.control.local_address());
    Captured server(place_.cpus[1], command(port, {}));
    if (!wait_until_listened_at(port, server, deadline)) fail("server", server);
    Captured client(place_.cpus[0],
                    command(port, {host, "-t", way_.bandwidth ? "tag_bw" : "tag_lat", "-s",
                                   std::to_string(way_.size), "-n", std::to_string(iterations),
                                   "-w", std::to_string(iterations / 4), "-f", "-v"}));
    const bool ended = client.finish(deadline);
    const auto figures = parse_ucx_perftest(client.output());
    if (!ended || client.status() != 0 || !figures) fail("client", client);
    if (!server.finish(steady_clock::now() + kServerPatience)) fail("server", server);
    return *figures;
  }

  static std::vector<std::string> command(uint16_t port, const std::vector<std::string>& role) {
    std::vector<std::string> words = {"env", "UCX_TLS=posix,self", "ucx_perftest", "-p",
                                      std::to_string(port)};
    words.insert(words.end(), role.begin(), role.end());
    return words;
  }

  [[noreturn]] static void fail(const char* end, const Captured& child) {
    const std::string output = child.output().substr(0, child.output().find('\n'));
    throw Unmeasured(std::string("ucx_perftest: its ") + end +
                     (child.finished() ? " failed: " + output : " did not end in time"));
  }

  Place place_;
  UcxWay way_;
  std::shared_ptr<double> transfer_;  // microseconds, of the round before
};

}  // namespace

std::function<std::unique_ptr<Lane>(const Place&)> ucx_lane(const UcxWay& way) {
  // A guess, until there was a round.
  auto transfer = std::make_shared<double>(1 + static_cast<double>(way.size) / 10'000);
  return [=](const Place& place) { return std::make_unique<UcxLane>(place, way, transfer); };
}

std::string ucx_obstacle() {
  if (is_installed("ucx_perftest")) return "";
  return "ucx_perftest is not installed (Debian: ucx-utils)";
}

std::string ucx_version() {
  if (!ucx_obstacle().empty()) return "not installed";
  Captured info(-1, {"ucx_info", "-v"});
  info.finish(steady_clock::now() + kPatience);
  const std::string& output = info.output();
  const std::string title = "Version ";
  const size_t at = output.find(title);
  if (at == std::string::npos) return "unknown";
  const size_t begin = at + title.size();
  return output.substr(begin, output.find('\n', begin) - begin);
}

std::optional<UcxFigures> parse_ucx_perftest(const std::string& output) {
  constexpr size_t kOverallLatency = 3;
  constexpr size_t kOverallBandwidth = 5;  // in MiB a second
  constexpr double kMega = 1 << 20;
  std::istringstream lines(output);
  bool titles = false;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> values = values_of(line);
    if (titles && values.size() > kOverallBandwidth) {
      const UcxFigures figures{.latency = std::atof(values[kOverallLatency].c_str()),
                               .bandwidth = kMega * std::atof(values[kOverallBandwidth].c_str())};
      if (figures.latency > 0 && figures.bandwidth > 0) return figures;
    }
    titles = values.size() > kOverallBandwidth && values[kOverallLatency] == "overall_lat" &&
             values[kOverallBandwidth] == "overall_bw";
  }
  return std::nullopt;
}

}  // namespace diwarp::tools
