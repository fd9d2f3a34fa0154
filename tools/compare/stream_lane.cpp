// SPDX-License-Identifier: Apache-2.0
#include "compare/stream_lane.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// A message that has not come so long after everything was sent is lost.
constexpr Duration kQuiet = milliseconds(20);

}  // namespace

struct StreamLane::Arrivals {
  uint64_t units = 0;
  uint64_t first_units = 0;  // came with the first step, before the time began
  Time first{};
  Time last{};

  void add(uint64_t count) {
    last = steady_clock::now();
    if (units == 0) {
      first = last;
      first_units = count;
    }
    units += count;
  }

  double per_second() const {
    const double seconds = std::chrono::duration<double>(last - first).count();
    return seconds > 0 ? static_cast<double>(units - first_units) / seconds : 0;
  }
};

Sample StreamLane::measure(Duration time) {
  run(time / 4);
  const Json result = run(time);
  control_.send({{"type", "stop"}});
  finish();
  const uint64_t sent = number_in(result, "sent", 0, UINT64_MAX);
  const uint64_t received = number_in(result, "received", 0, UINT64_MAX);
  if (received == 0) throw Failure("Nothing of what was sent arrived.");
  return {.value = result["per_second"].get<double>(),
          .sent = sent,
          .lost = sent - std::min(sent, received)};
}

Json StreamLane::run(Duration time) {
  control_.send({{"type", "begin"}});
  control_.expect("ready");
  control_.send({{"type", "sent"}, {"units", send_for(time)}});
  return control_.expect("result");
}

uint64_t StreamLane::send_for(Duration time) {
  constexpr int kStepsPerClockRead = 4;
  constexpr Duration kBetweenLooks = milliseconds(1);
  const Time end = steady_clock::now() + time;
  uint64_t units = 0;
  Time next_look{};
  for (Time now{}; now < end; now = steady_clock::now()) {
    for (int i = 0; i < kStepsPerClockRead; ++i) units += send();
    if (now < next_look) continue;
    look_after(now);
    check_interrupted();
    control_.look();
    next_look = now + kBetweenLooks;
  }
  return units;
}

void StreamLane::serve() {
  while (true) {
    const Json word = control_.next();
    if (text_in(word, "type") == "stop") break;
    control_.send({{"type", "ready"}});
    const Arrivals arrivals = absorb();
    const uint64_t sent = number_in(control_.expect("sent"), "units", 0, UINT64_MAX);
    control_.send({{"type", "result"},
                   {"sent", sent},
                   {"received", arrivals.units},
                   {"per_second", arrivals.per_second()}});
  }
  finish();
}

/// Until the near end says that all was sent, and then until nothing has come for a while.
StreamLane::Arrivals StreamLane::absorb() {
  constexpr int kStepsPerLook = 256;
  Arrivals arrivals;
  Time quiet_since{};
  while (!control_.pending() || steady_clock::now() - quiet_since < kQuiet) {
    const uint64_t before = arrivals.units;
    for (int i = 0; i < kStepsPerLook; ++i) {
      if (const uint64_t units = receive()) arrivals.add(units);
    }
    if (arrivals.units != before || !control_.pending()) quiet_since = steady_clock::now();
    check_interrupted();
    control_.look();
  }
  return arrivals;
}

}  // namespace diwarp::tools
