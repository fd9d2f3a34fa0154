// SPDX-License-Identifier: Apache-2.0
#include "compare/rounds.h"

#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/device_choice.h"
#include "common/failure.h"
#include "common/interrupt.h"
#include "common/processes.h"

namespace diwarp::tools {
namespace {

/// Binds this thread to a processor while it lives. The threads of a device are made before, so
/// they stay free to run elsewhere.
class Binding {
 public:
  explicit Binding(int cpu) {
    sched_getaffinity(0, sizeof before_, &before_);
    bind_to_processor(cpu);
  }
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;
  ~Binding() { sched_setaffinity(0, sizeof before_, &before_); }

 private:
  cpu_set_t before_{};
};

Place place_of(Side side, const Settings& settings, Control& control) {
  return {.side = side,
          .control = control,
          .cpus = settings.cpus,
          .device = settings.device,
          .size = settings.size};
}

/// Why the lane cannot be measured here, with these settings: "" if it can.
std::string obstacle_of(const LaneInfo& lane, const Settings& settings) {
  if (settings.size.value_or(0) > lane.max_size)
    return "a datagram carries at most " + std::to_string(lane.max_size) + " bytes";
  return lane.obstacle ? lane.obstacle() : "";
}

/// Nothing, and why, of what is not ours and fails.
std::optional<Sample> measure(const Settings& settings, const LaneInfo& info, Control& control,
                              std::string& obstacle) {
  control.send({{"type", "lane"}, {"name", info.name}});
  const auto lane = info.make(place_of(Side::near, settings, control));
  const Binding binding(settings.cpus[0]);
  std::optional<Sample> sample;
  const ProcessorTime before = processor_time();
  try {
    sample = lane->measure(settings.time);
  } catch (const Unmeasured& reason) {
    obstacle = reason.what();
  }
  // This end's sockets stay open as long as the other end looks at its own.
  const Json done = control.expect("done");
  if (sample) {
    sample->near = processor_time() - before;
    sample->far = cost_in(done).processor;
  }
  return sample;
}

/// A line on a terminal; wiped out by round 0.
void show_progress(uint64_t round, uint64_t rounds, std::string_view lane) {
  if (::isatty(STDERR_FILENO) == 0) return;
  std::fputs("\r\033[K", stderr);
  if (round > 0) {
    std::fprintf(stderr, "round %llu of %llu: %.*s", static_cast<unsigned long long>(round),
                 static_cast<unsigned long long>(rounds), static_cast<int>(lane.size()),
                 lane.data());
  }
  std::fflush(stderr);
}

}  // namespace

std::array<int, 2> default_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof allowed, &allowed);
  std::array<int, 2> found = {-1, -1};
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
    if (CPU_ISSET(static_cast<size_t>(cpu), &allowed)) found = {cpu, found[0]};
  }
  if (found[1] < 0) found[1] = found[0];
  return found;
}

void check_processors(const Settings& settings) {
  for (const int cpu : settings.cpus) const Binding probe(cpu);
}

Measurements play_near(const Settings& settings, std::span<const LaneInfo> lanes,
                       Control& control) {
  Measurements all;
  for (const LaneInfo& lane : lanes) {
    const std::string obstacle = obstacle_of(lane, settings);
    if (!obstacle.empty()) all.obstacles.emplace(lane.name, obstacle);
  }
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    for (const LaneInfo& lane : lanes) {
      check_interrupted();
      show_progress(round + 1, settings.rounds, lane.name);
      if (all.obstacles.contains(lane.name)) continue;
      std::string obstacle;
      const auto sample = measure(settings, lane, control, obstacle);
      if (sample)
        all.samples[std::string(lane.name)].push_back(*sample);
      else
        all.obstacles.emplace(lane.name, obstacle);
    }
  }
  show_progress(0, 0, "");
  control.send({{"type", "lane"}, {"name", ""}});
  return all;
}

void play_far(const Settings& settings, Control& control) {
  capture_at_the_first_end();
  while (true) {
    const std::string name = text_in(control.expect("lane"), "name");
    if (name.empty()) return;
    const auto lane = info_of_lane(name).make(place_of(Side::far, settings, control));
    const Binding binding(settings.cpus[1]);
    const ProcessorTime before = processor_time();
    lane->serve();
    Json done = to_json(Cost{.processor = processor_time() - before});
    done["type"] = "done";
    control.send(done);
  }
}

}  // namespace diwarp::tools
