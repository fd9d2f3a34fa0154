// SPDX-License-Identifier: Apache-2.0
#include "compare/fabric.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "compare/captured.h"
#include "compare/tcp_ports.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// For one run of both processes, and for its server to end when its client has.
constexpr Duration kPatience = std::chrono::seconds(15);
constexpr Duration kServerPatience = std::chrono::seconds(3);
constexpr int kPortsTried = 3;
constexpr uint64_t kFewest = 50;
constexpr uint64_t kMost = 1'000'000;

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

class FabricLane final : public Lane {
 public:
  FabricLane(const Place& place, const FabricWay& way, std::shared_ptr<double> transfer)
      : place_(place), way_(way), transfer_(std::move(transfer)) {}

  /// The other end has nothing to do.
  void serve() override {}

  Sample measure(Duration time) override {
    const double microseconds = std::chrono::duration<double, std::micro>(time).count();
    // A quarter more, as the other lanes have a warm-up of that.
    const auto iterations = static_cast<uint64_t>(1.25 * microseconds / (2 * *transfer_));
    *transfer_ = run(std::clamp(iterations, kFewest, kMost));
    return {.value = *transfer_, .mean = *transfer_};
  }

 private:
  double run(uint64_t iterations) {
    const Address address = place_.control.local_address();
    const Time deadline = steady_clock::now() + kPatience;
    const Server server = start_server(iterations, address, deadline);
    Captured client(place_.cpus[0],
                    command(iterations, {"-P", std::to_string(server.port), address.host()}));
    const bool ended = client.finish(deadline);
    const auto transfer = parse_fi_pingpong(client.output());
    if (!ended || client.status() != 0 || !transfer) fail("client", client);
    if (!server.child->finish(steady_clock::now() + kServerPatience)) fail("server", *server.child);
    return *transfer;
  }

  struct Server {
    uint16_t port;
    std::unique_ptr<Captured> child;
  };

  /// Another program may take a port that was free a moment ago: then another port is tried.
  Server start_server(uint64_t iterations, const Address& address, Time deadline) {
    for (int attempt = 1;; ++attempt) {
      const uint16_t port = free_tcp_port(address);
      auto child = std::make_unique<Captured>(place_.cpus[1],
                                              command(iterations, {"-B", std::to_string(port)}));
      if (wait_until_listened_at(port, *child, deadline)) return {port, std::move(child)};
      const bool taken = child->output().find("Address already in use") != std::string::npos;
      if (!taken || attempt == kPortsTried) fail("server", *child);
    }
  }

  std::vector<std::string> command(uint64_t iterations, const std::vector<std::string>& role) {
    std::vector<std::string> words = {"fi_pingpong",
                                      "-p",
                                      way_.provider,
                                      "-e",
                                      way_.endpoint,
                                      "-S",
                                      std::to_string(way_.size),
                                      "-I",
                                      std::to_string(iterations)};
    if (place_.control.local_address().family() == AddressFamily::ipv6) words.emplace_back("-6");
    words.insert(words.end(), role.begin(), role.end());
    return words;
  }

  [[noreturn]] void fail(const char* end, const Captured& child) const {
    const std::string output = child.output().substr(0, child.output().find('\n'));
    throw Unmeasured("fi_pingpong -p " + way_.provider + ": its " + end +
                     (child.finished() ? " failed: " + output : " did not end in time"));
  }

  Place place_;
  FabricWay way_;
  std::shared_ptr<double> transfer_;  // microseconds, of the round before
};

}  // namespace

std::function<std::unique_ptr<Lane>(const Place&)> fabric_lane(const FabricWay& way) {
  // A guess, until there was a round.
  auto transfer = std::make_shared<double>(10 + static_cast<double>(way.size) / 1000);
  return [=](const Place& place) { return std::make_unique<FabricLane>(place, way, transfer); };
}

std::string fabric_obstacle() {
  if (is_installed("fi_pingpong")) return "";
  return "fi_pingpong is not installed (Debian: libfabric-bin)";
}

std::string fabric_version() {
  if (!fabric_obstacle().empty()) return "not installed";
  Captured info(-1, {"fi_info", "--version"});
  info.finish(steady_clock::now() + kPatience);
  std::istringstream lines(info.output());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("libfabric: ")) return line.substr(11);
  }
  return "unknown";
}

std::optional<double> parse_fi_pingpong(const std::string& output) {
  std::istringstream lines(output);
  std::string line;
  size_t column = 0;
  while (std::getline(lines, line)) {
    const std::vector<std::string> words = words_of(line);
    if (column > 0 && words.size() > column) {
      char* end = nullptr;
      const double value = std::strtod(words[column].c_str(), &end);
      if (*end == 0 && value > 0) return value;
    }
    const auto title = std::ranges::find(words, "usec/xfer");
    column = title == words.end() ? 0 : static_cast<size_t>(title - words.begin());
  }
  return std::nullopt;
}

}  // namespace diwarp::tools
