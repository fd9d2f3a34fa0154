// SPDX-License-Identifier: Apache-2.0
#include "compare/ping_lane.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/interrupt.h"
#include "common/summary.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

}  // namespace

Sample PingLane::measure(Duration time) {
  const Time warm = steady_clock::now() + time / 4;
  while (steady_clock::now() < warm) ping();
  Sample sample;
  std::vector<double> half_trips;
  half_trips.reserve(size_t{1} << 20);
  const Time start = steady_clock::now();
  Time now = start;
  do {
    const auto took = ping();
    now = steady_clock::now();
    ++sample.sent;
    if (took)
      half_trips.push_back(Microseconds(*took).count() / 2);
    else
      ++sample.lost;
  } while (now - start < time);
  sample.mean = Microseconds(now - start).count() / (2 * static_cast<double>(sample.sent));
  sample.value = median(std::move(half_trips));
  control_.send({{"type", "stop"}});
  control_.expect("stopped");
  finish();
  check_interrupted();
  return sample;
}

void PingLane::serve() {
  echo();
  control_.expect("stop");
  control_.send({{"type", "stopped"}});
  finish();
}

}  // namespace diwarp::tools
